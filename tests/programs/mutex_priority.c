/* Priority protocols: inheritance, and ceilings (which need a privilege: the program prints what it
   is refused). */
#include "case.h"

static int timedlock_briefly(void *mutex) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 3);
    return pthread_mutex_timedlock(mutex, &soon);
}

static int timedlock_invalid(void *mutex) {
    struct timespec invalid = {now(CLOCK_REALTIME).tv_sec + 5, 1000000000};
    return pthread_mutex_timedlock(mutex, &invalid);
}

static int clocklock_briefly(void *mutex) {
    struct timespec soon = after_ms(CLOCK_MONOTONIC, 3);
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon);
}

static void inherit(const struct mutex_kind *kind) {
    pthread_mutex_t mutex;
    make_mutex(&mutex, kind->type, PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
    CODE(pthread_mutex_lock(&mutex), "inherit.%s.lock", kind->name);
    CODE(ELSEWHERE(timedlock_briefly, &mutex), "inherit.%s.timedlock", kind->name);
    CODE(ELSEWHERE(timedlock_invalid, &mutex), "inherit.%s.timedlock-invalid", kind->name);
    CODE(ELSEWHERE(clocklock_briefly, &mutex), "inherit.%s.clocklock", kind->name);
    struct other waiter;
    begin(&waiter, lock_unlock, &mutex);
    HOLDS(!is_done(&waiter), "inherit.%s.waits", kind->name);
    CODE(pthread_mutex_unlock(&mutex), "inherit.%s.unlock", kind->name);
    CODE(finish(&waiter), "inherit.%s.waiter", kind->name);
    CODE(ELSEWHERE(probe, &mutex), "inherit.%s.probe", kind->name);
    CODE(pthread_mutex_destroy(&mutex), "inherit.%s.destroy", kind->name);
}

static pthread_mutex_t counted_mutex;
static long counted;

static void count(long index) {
    (void)index;
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&counted_mutex);
        counted++;
        pthread_mutex_unlock(&counted_mutex);
    }
}

static void protect(const struct mutex_kind *kind) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, kind->type);
    pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT);
    CODE(pthread_mutexattr_setprioceiling(&a, 5), "protect.%s.attr-ceiling", kind->name);
    pthread_mutex_t mutex;
    CODE(pthread_mutex_init(&mutex, &a), "protect.%s.init", kind->name);
    int ceiling = -7, old = -7;
    CODE(pthread_mutex_getprioceiling(&mutex, &ceiling), "protect.%s.getprioceiling", kind->name);
    VALUE(ceiling, "protect.%s.ceiling", kind->name);
    int locked = pthread_mutex_lock(&mutex);
    CODE(locked, "protect.%s.lock", kind->name);
    CODE(ELSEWHERE(probe, &mutex), "protect.%s.probe", kind->name);
    CODE(ELSEWHERE(timedlock_briefly, &mutex), "protect.%s.timedlock", kind->name);
    if (locked == 0) CODE(pthread_mutex_unlock(&mutex), "protect.%s.unlock", kind->name);
    CODE(pthread_mutex_setprioceiling(&mutex, 7, &old), "protect.%s.setprioceiling", kind->name);
    VALUE(old, "protect.%s.old-ceiling", kind->name);
    CODE(pthread_mutex_setprioceiling(&mutex, 1000, &old), "protect.%s.setprioceiling-1000", kind->name);
    pthread_mutex_getprioceiling(&mutex, &ceiling);
    VALUE(ceiling, "protect.%s.new-ceiling", kind->name);
    CODE(pthread_mutex_destroy(&mutex), "protect.%s.destroy", kind->name);
    pthread_mutexattr_destroy(&a);
}

/* A thread of real-time priority, where the system allows one, can use a ceiling above its own. */
static int in_real_time(void *argument) {
    struct sched_param priority = {.sched_priority = 2};
    int code = pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
    CODE(code, "protect.real-time.priority");
    if (code != 0) return code;
    int old;
    pthread_mutex_t *mutex = argument;
    CODE(pthread_mutex_lock(mutex), "protect.real-time.lock");
    CODE(pthread_mutex_trylock(mutex), "protect.real-time.trylock");
    CODE(pthread_mutex_unlock(mutex), "protect.real-time.unlock");
    CODE(pthread_mutex_trylock(mutex), "protect.real-time.trylock-free");
    CODE(pthread_mutex_unlock(mutex), "protect.real-time.unlock-again");
    CODE(pthread_mutex_setprioceiling(mutex, 1, &old), "protect.real-time.ceiling-below");
    CODE(pthread_mutex_lock(mutex), "protect.real-time.lock-above-ceiling");
    return 0;
}

static void protect_in_real_time(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT);
    pthread_mutexattr_setprioceiling(&a, 5);
    pthread_mutex_t mutex;
    NEED(pthread_mutex_init(&mutex, &a) == 0);
    elsewhere(in_real_time, &mutex);
}

int main(void) {
    for EACH(kind, MUTEX_KINDS) inherit(kind);
    make_mutex(&counted_mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
    crew(4, count);
    VALUE(counted, "inherit.counted");
    for EACH(kind, MUTEX_KINDS) protect(kind);
    protect_in_real_time();
    return 0;
}
