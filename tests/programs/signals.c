/* Signals while waiting: handlers run, post semaphores, and the wait goes on; no call says EINTR or
   changes errno. */
#include "case.h"

#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t posted;
static int handled, ready;

static void post(int signal) {
    (void)signal;
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
    sem_post(&posted);
}

static int errno_after(int code) { return code == 0 && errno != UNTOUCHED ? errno : code; }

static int lock_once(void *unused) {
    (void)unused;
    errno = UNTOUCHED;
    int code = errno_after(pthread_mutex_lock(&mutex));
    pthread_mutex_unlock(&mutex);
    return code;
}

static int timedlock_once(void *unused) {
    (void)unused;
    struct timespec later = after_ms(CLOCK_REALTIME, 20000);
    errno = UNTOUCHED;
    int code = errno_after(pthread_mutex_timedlock(&mutex, &later));
    pthread_mutex_unlock(&mutex);
    return code;
}

static int wait_until_ready(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    errno = UNTOUCHED;
    int code = 0;
    while (!ready && code == 0) code = pthread_cond_wait(&cond, &mutex);
    code = errno_after(code);
    pthread_mutex_unlock(&mutex);
    return code;
}

static int timedwait_until_ready(void *unused) {
    (void)unused;
    struct timespec later = after_ms(CLOCK_MONOTONIC, 20000);
    pthread_mutex_lock(&mutex);
    errno = UNTOUCHED;
    int code = 0;
    while (!ready && code == 0) code = pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &later);
    code = errno_after(code);
    pthread_mutex_unlock(&mutex);
    return code;
}

static int write_once(void *unused) {
    (void)unused;
    errno = UNTOUCHED;
    int code = errno_after(pthread_rwlock_wrlock(&rwlock));
    pthread_rwlock_unlock(&rwlock);
    return code;
}

static int read_once(void *unused) {
    (void)unused;
    errno = UNTOUCHED;
    int code = errno_after(pthread_rwlock_rdlock(&rwlock));
    pthread_rwlock_unlock(&rwlock);
    return code;
}

static void hold(void) {
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
}

static void let_go(void) {
    ready = 1;
    pthread_cond_broadcast(&cond);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_unlock(&mutex);
}

/* Signals a waiting thread a few times, makes sure that its handler ran and that it waits on. */
static void interrupted(const char *name, Call call, bool in_cond) {
    struct other thread;
    ready = handled = 0;
    if (!in_cond) hold();
    begin(&thread, call, NULL);
    if (in_cond) hold();
    HOLDS(!is_done(&thread), "signals.%s.waits", name);
    for (int i = 0; i < 5; i++) {
        CODE(pthread_kill(thread.thread, SIGUSR1), "signals.%s.kill-%d", name, i);
        while (sem_wait(&posted) != 0) {
        }
    }
    VALUE(handled, "signals.%s.handled", name);
    HOLDS(!is_done(&thread), "signals.%s.waits-on", name);
    let_go();
    CODE(finish(&thread), "signals.%s.code", name);
}

/* A thread that is in and out of sections and waits all the time, shelled with signals. */
static int stop;

static int work(void *unused) {
    (void)unused;
    do {
        struct timespec past = {1, 0};
        if (pthread_mutex_lock(&mutex) != 0) return -1;
        if (pthread_cond_timedwait(&cond, &mutex, &past) != ETIMEDOUT) return -2;
        if (pthread_mutex_unlock(&mutex) != 0) return -3;
        if (pthread_rwlock_rdlock(&rwlock) != 0 || pthread_rwlock_unlock(&rwlock) != 0) return -4;
    } while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE));
    return 0;
}

static void shelled(void) {
    struct other thread = {};
    handled = stop = 0;
    thread.call = work;
    NEED(pthread_create(&thread.thread, NULL, other_main, &thread) == 0);
    for (int i = 0; i < 200; i++) {
        NEED(pthread_kill(thread.thread, SIGUSR1) == 0);
        while (sem_wait(&posted) != 0) {
        }
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    CODE(finish(&thread), "signals.shelled.code");
    VALUE(handled, "signals.shelled.handled");
}

int main(void) {
    sem_init(&posted, 0, 0);
    for (int restart = 0; restart <= 1; restart++) {
        struct sigaction action = {.sa_handler = post, .sa_flags = restart ? SA_RESTART : 0};
        NEED(sigaction(SIGUSR1, &action, NULL) == 0);
        const struct {
            const char *name;
            Call call;
            bool in_cond;
        } waits[] = {{"lock", lock_once, false},       {"timedlock", timedlock_once, false},
                     {"wrlock", write_once, false},    {"rdlock", read_once, false},
                     {"wait", wait_until_ready, true}, {"clockwait", timedwait_until_ready, true}};
        for EACH(wait, waits) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", wait->name, restart ? ".restart" : "");
            interrupted(name, wait->call, wait->in_cond);
        }
    }
    shelled();
    return 0;
}
