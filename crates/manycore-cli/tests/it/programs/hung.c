/* A program that hangs: THREADS threads wait for ever for a lock of the program's own that no thread
 * gives back.
 *
 *     hung THREADS
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Held, and somebody may sleep. */
static int held_word = 2;

__attribute__((noinline)) void wait_for_ever(void)
{
    for (;;) {
        /* SAFETY: the fourth argument's register, which only this call uses. */
        register long timeout __asm__("r10") = 0;
        long result = SYS_futex;
        /* SAFETY: the kernel's convention for calls; it changes what is named, and reads the
           word. */
        __asm__ volatile("syscall"
                         : "+a"(result)
                         : "D"(&held_word), "S"((long)FUTEX_WAIT_PRIVATE), "d"(2L), "r"(timeout)
                         : "rcx", "r11", "memory");
    }
}

static void *run(void *unused)
{
    wait_for_ever();
    return unused;
}

int main(int argc, char **argv)
{
    for (int at = argc > 1 ? atoi(argv[1]) : 3; at > 0; at--) {
        pthread_t thread;
        pthread_create(&thread, NULL, run, NULL);
    }
    pause();
    return 0;
}
