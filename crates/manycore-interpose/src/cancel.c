/* Waits at which a thread can be cancelled.
 *
 * POSIX makes waiting on a condition variable a cancellation point: a cancelled waiter takes the
 * mutex again, runs its cleanup handlers and ends. glibc ends a thread by unwinding its stack, from
 * the very instruction at which the request arrived if cancellation is asynchronous. Unwinding is
 * well defined through C and through Rust frames that have nothing to drop, so what has to happen
 * on the way is called from here, in C.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

struct cleanup {
    void (*run)(void *);
    void *argument;
};

static void leave(struct cleanup *cleanup)
{
    if (cleanup->run)
        cleanup->run(cleanup->argument);
}

/* Calls body(argument), and abandon(argument) if the thread is cancelled in there. */
void manycore_guard(void (*body)(void *), void (*abandon)(void *), void *argument)
{
    __attribute__((cleanup(leave))) struct cleanup cleanup = { abandon, argument };
    body(argument);
    cleanup.run = NULL;
}

/* Not by the C library's function: a library of ours, or a program, may have one of that name in
   front. */
static inline long futex(uint32_t *word, int operation, uint32_t expected, const struct timespec *until)
{
#ifdef __aarch64__
    long result;
    /* SAFETY: the kernel reads the word and the time, and keeps all registers but x0. */
    __asm__ volatile("mov x0, %[word]\n\tmov x1, %[operation]\n\tmov x2, %[expected]\n\tmov x3, %[until]\n\t"
                     "mov x4, xzr\n\tmov w5, %[any]\n\tmov x8, %[number]\n\tsvc 0\n\tmov %[result], x0"
                     : [result] "=r"(result)
                     : [word] "r"(word), [operation] "r"((long)operation), [expected] "r"((long)expected),
                       [until] "r"(until), [any] "i"(FUTEX_BITSET_MATCH_ANY), [number] "i"(SYS_futex)
                     : "x0", "x1", "x2", "x3", "x4", "x5", "x8", "memory");
#else
    long result = SYS_futex;
    /* SAFETY: the kernel reads the word and the time, and keeps all registers but those named. */
    __asm__ volatile("mov %[until], %%r10\n\txor %%r8d, %%r8d\n\tmov %[any], %%r9d\n\tsyscall"
                     : "+a"(result)
                     : "D"(word), "S"((long)operation), "d"((long)expected), [until] "r"(until), [any] "i"(FUTEX_BITSET_MATCH_ANY)
                     : "rcx", "r8", "r9", "r10", "r11", "memory");
#endif
    return result;
}

/* Sleeps while *word == expected, and can be cancelled at any instruction: only to be called from a
 * body above. Returns 0 or an error number, and leaves errno alone. */
int manycore_wait_open(uint32_t *word, int wall, uint32_t expected, const struct timespec *until)
{
    int operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | (wall ? FUTEX_CLOCK_REALTIME : 0);
    int saved = errno;
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    long result = futex(word, operation, expected, until);
    pthread_setcanceltype(type, &type);
    errno = saved;
    return result < 0 ? (int)-result : 0;
}
