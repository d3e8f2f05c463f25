/* A coroutine as greenlet has them: on a stack whose calls end with the one that it was started by.
 * What is beyond is no stack any more, and here leads to addresses where nothing is mapped. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK = 1 << 16, NOWHERE = 0x10 };
static jmp_buf back;

__attribute__((noinline)) static void coroutine(void) {
    pthread_mutex_t *mutex = malloc(sizeof *mutex);
    pthread_mutex_init(mutex, NULL);
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    longjmp(back, 1);
}

/* Its own caller's frame is where its frame pointer says. */
__attribute__((noinline, optimize("no-omit-frame-pointer"))) static void start(void *volatile *where, char *top) {
    *where = __builtin_return_address(0);
    if (top) {
        /* SAFETY: the new stack has STACK bytes that no other call uses, and control does not come
           back here: `coroutine` jumps to `main`, whose registers `back` has kept. */
        __asm__ volatile(
#ifdef __x86_64__
            "mov %0, %%rsp\n\tmov %2, %%ebp\n\tcall *%1\n\t"
#else
            "mov sp, %0\n\tmov x29, %2\n\tblr %1\n\t"
#endif
            ::"r"(top), "r"(coroutine), "i"(NOWHERE));
        __builtin_unreachable();
    }
}

int main(void) {
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *volatile where;
    if (stack == MAP_FAILED) return 1;
    start(&where, NULL);
    for (int i = 0; i < 100; i++)
        if (setjmp(back) == 0) start(&where, stack + STACK - 16 * i);
    puts("back");
    return 0;
}
