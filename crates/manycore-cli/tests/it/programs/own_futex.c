/* A lock of the program's own, made of a futex: no library can be put under it.
 *
 *     own_futex THREADS TURNS [busy]  each thread has the lock so often, and sleeps for 2 ms meanwhile; another computes
 *
 * Prints for how many nanoseconds, and how often, its threads slept in the futex call.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* 0: free. 1: held. 2: held, and somebody may sleep. */
static atomic_int *word;
static _Atomic long waited, sleeps;
static pthread_mutex_t replaced = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static atomic_int arrived;
static int threads, turns;

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* The system call itself, as programs have it that inline their locks. */
static long futex(int operation, int value)
{
#ifdef __aarch64__
    /* SAFETY: the register of a call's number, which only this call uses. */
    register long number __asm__("x8") = SYS_futex;
    /* SAFETY: the register of the first argument, which only this call uses. */
    register long first __asm__("x0") = (long)word;
    /* SAFETY: the register of the second argument, which only this call uses. */
    register long second __asm__("x1") = operation;
    /* SAFETY: the register of the third argument, which only this call uses. */
    register long third __asm__("x2") = value;
    /* SAFETY: the register of the fourth argument, which only this call uses. */
    register long timeout __asm__("x3") = 0;
    /* SAFETY: the kernel's convention for calls; it changes what is named, and reads the word. */
    __asm__ volatile("svc 0"
                     : "+r"(first)
                     : "r"(number), "r"(second), "r"(third), "r"(timeout)
                     : "memory");
    return first;
#else
    /* SAFETY: the fourth argument's register, which only this call uses. */
    register long timeout __asm__("r10") = 0;
    long result = SYS_futex;
    /* SAFETY: the kernel's convention for calls; it changes what is named, and reads the word. */
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(word), "S"((long)operation), "d"((long)value), "r"(timeout)
                     : "rcx", "r11", "memory");
    return result;
#endif
}

__attribute__((noinline)) void own_lock(void)
{
    int found = 0;
    if (atomic_compare_exchange_strong(word, &found, 1))
        return;
    while (atomic_exchange(word, 2) != 0) {
        long start = now();
        if (futex(FUTEX_WAIT_PRIVATE, 2) == 0) {
            waited += now() - start;
            sleeps++;
        }
    }
}

__attribute__((noinline)) void own_unlock(void)
{
    if (atomic_exchange(word, 0) == 2)
        futex(FUTEX_WAKE_PRIVATE, 1);
}

static void *run(void *unused)
{
    for (int turn = 0; turn < turns; turn++) {
        own_lock();
        usleep(2000);
        own_unlock();
    }
    /* All at once, or it may happen that none waits below; and not by a futex. */
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < threads)
        usleep(500);
    /* One that the library replaces, and waits for by the futex call, too. It is held for a tenth of
       the time, and costs less than the other even on a machine that is late with every sleep. */
    for (int turn = 0; turn < turns; turn++) {
        pthread_mutex_lock(&replaced);
        usleep(200);
        pthread_mutex_unlock(&replaced);
    }
    /* So with its condition variables: who waits for one may be cancelled, which goes another
       way. */
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec++;
    pthread_mutex_lock(&replaced);
    pthread_cond_timedwait(&never, &replaced, &soon);
    pthread_mutex_unlock(&replaced);
    return unused;
}

static void *compute(void *unused)
{
    for (volatile long at = 0;; at++)
        ;
    return unused;
}

int main(int argc, char **argv)
{
    threads = argc > 1 ? atoi(argv[1]) : 4;
    pthread_t *all = calloc((size_t)threads, sizeof(*all));
    turns = argc > 2 ? atoi(argv[2]) : 50;
    word = calloc(1, sizeof(*word));
    if (argc > 3) {
        pthread_t computing;
        pthread_create(&computing, NULL, compute, NULL);
    }
    for (int at = 0; at < threads; at++)
        pthread_create(&all[at], NULL, run, NULL);
    for (int at = 0; at < threads; at++)
        pthread_join(all[at], NULL);
    printf("%ld %ld\n", waited, sleeps);
    return 0;
}
