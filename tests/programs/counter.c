/* Processes that may not read the time stamp counter: the kernel ends who does by SIGSEGV. Locks of
 * theirs work, contended ones, too. The program reads no precise clock there, since the C library
 * does so by the counter. */
#include "case.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static long count;
static int turn, rounds;

static void *work(void *argument) {
    long me = (long)argument;
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        count++;
        if (i % 16 == 0) sched_yield();
        pthread_mutex_unlock(&mutex);
        if (i % 8 == me) pthread_rwlock_wrlock(&rwlock), count++, count--;
        else pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        pthread_spin_lock(&spin);
        pthread_spin_unlock(&spin);
    }
    for (int i = 0; i < rounds / 8; i++) {
        pthread_mutex_lock(&mutex);
        while (turn % 2 != me) pthread_cond_wait(&cond, &mutex);
        turn++;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void contended(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) NEED(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < 2; i++) NEED(pthread_join(threads[i], NULL) == 0);
    NEED(count == 2 * rounds);
}

static void taken(void) {
    contended();
    count = turn = 0;
    NEED(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
    contended();
}

static void taken_by_number(void) {
    NEED(syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
    contended();
}

static void taken_and_given_back(void) {
    taken_by_number();
    NEED(prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0);
    count = turn = 0;
    contended();
}

static void uncontended(void) {
    static pthread_mutex_t more[24];
    for (int i = 0; i < 24; i++) pthread_mutex_lock(&more[i]);
    for (int i = 0; i < 24; i++) pthread_mutex_unlock(&more[i]);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_wrlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        pthread_cond_signal(&cond);
        pthread_cond_broadcast(&cond);
    }
}

/* Strict mode takes the counter away, and all calls but read, write and exit. */
static void strict(void) {
    NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    uncontended();
}

static void strict_by_prctls_number(void) {
    NEED(syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    uncontended();
}

static void strict_by_number(void) {
    NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) == 0);
    uncontended();
}

static void strict_after_locks(void) {
    uncontended();
    strict();
}

int main(void) {
    rounds = scaled(200);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    say(end_of(taken), "counter.taken.ends");
    say(end_of(taken_by_number), "counter.taken_by_number.ends");
    say(end_of(taken_and_given_back), "counter.given_back.ends");
    say(end_of(strict), "counter.strict.ends");
    say(end_of(strict_by_prctls_number), "counter.strict_by_prctls_number.ends");
    say(end_of(strict_by_number), "counter.strict_by_number.ends");
    say(end_of(strict_after_locks), "counter.strict_after_locks.ends");
    return 0;
}
