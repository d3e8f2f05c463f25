/* A launcher: waits for a word of its own for 800 ms in all, and is then another program.
 *
 *     then PROGRAM [ARGUMENT]...
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) void first_wait(int *word)
{
    struct timespec time = {.tv_nsec = 50 * 1000 * 1000};
    /* SAFETY: the fourth argument's register, which only this call uses. */
    register const struct timespec *timeout __asm__("r10") = &time;
    long result = SYS_futex;
    /* SAFETY: the kernel's convention for calls; it changes what is named, and reads the word and
       the time. */
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(word), "S"((long)FUTEX_WAIT_PRIVATE), "d"(2L), "r"(timeout)
                     : "rcx", "r11", "memory");
}

int main(int argc, char **argv)
{
    int *word = malloc(sizeof(*word));
    *word = 2;
    for (int turn = 0; turn < 16; turn++)
        first_wait(word);
    return argc > 1 ? execv(argv[1], argv + 1) : 0;
}
