/* Robust mutexes: their owner dies, as a thread and as a process. */
#include "case.h"

static int lock_and_exit(void *mutex) { return pthread_mutex_lock(mutex); }

static int lock_and_be_killed(void *mutex) {
    int code = pthread_mutex_lock(mutex);
    if (code == 0) kill(getpid(), SIGKILL);
    return code;
}

static int timedlock_soon(void *mutex) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 2000);
    return pthread_mutex_timedlock(mutex, &soon);
}

static int clocklock_soon(void *mutex) {
    struct timespec soon = after_ms(CLOCK_MONOTONIC, 2000);
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon);
}

struct way {
    const char *name;
    Call lock;
};

static const struct way WAYS[] = {
    {"lock", (Call)pthread_mutex_lock},
    {"trylock", (Call)pthread_mutex_trylock},
    {"timedlock", timedlock_soon},
    {"clocklock", clocklock_soon},
};

static void dies_in(pthread_mutex_t *mutex, bool process, const char *name) {
    if (process)
        VALUE(IN_CHILD(lock_and_be_killed, mutex), "%s.owner-killed", name);
    else
        CODE(ELSEWHERE(lock_and_exit, mutex), "%s.owner-exits", name);
}

/* The next owner mends what is protected, and all goes on. */
static void mended(const char *name, pthread_mutex_t *mutex, bool process, const struct way *way) {
    dies_in(mutex, process, name);
    CODE(way->lock(mutex), "%s.inherits", name);
    CODE(ELSEWHERE(pthread_mutex_trylock, mutex), "%s.held-by-heir", name);
    CODE(pthread_mutex_consistent(mutex), "%s.consistent", name);
    CODE(pthread_mutex_consistent(mutex), "%s.consistent-twice", name);
    CODE(pthread_mutex_unlock(mutex), "%s.unlock", name);
    CODE(way->lock(mutex), "%s.lock-after", name);
    CODE(pthread_mutex_unlock(mutex), "%s.unlock-after", name);
}

/* The next owner leaves it, and no thread will ever have it. */
static void abandoned(const char *name, pthread_mutex_t *mutex, bool process, const struct way *way) {
    dies_in(mutex, process, name);
    CODE(way->lock(mutex), "%s.inherits", name);
    CODE(pthread_mutex_unlock(mutex), "%s.unlock-inconsistent", name);
    CODE(way->lock(mutex), "%s.lock-after", name);
    CODE(ELSEWHERE(way->lock, mutex), "%s.lock-after-elsewhere", name);
    CODE(pthread_mutex_consistent(mutex), "%s.consistent-after", name);
    CODE(pthread_mutex_destroy(mutex), "%s.destroy", name);
}

/* Somebody already waits when the owner dies. */
static int hold_until_told(void *argument) {
    void **mutex_and_flag = argument;
    int code = pthread_mutex_lock(mutex_and_flag[0]);
    while (!__atomic_load_n((int *)mutex_and_flag[1], __ATOMIC_ACQUIRE)) pause_ms(1);
    return code;
}

static int inherit_and_mend(void *mutex) {
    int code = pthread_mutex_lock(mutex);
    pthread_mutex_consistent(mutex);
    pthread_mutex_unlock(mutex);
    return code;
}

static void waiter_inherits(const struct mutex_kind *kind) {
    pthread_mutex_t mutex;
    make_mutex(&mutex, kind->type, PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
    int go = 0;
    void *mutex_and_flag[] = {&mutex, &go};
    struct other owner, waiter;
    begin(&owner, hold_until_told, mutex_and_flag);
    begin(&waiter, inherit_and_mend, &mutex);
    HOLDS(!is_done(&waiter), "robust.%s.waiter.waits", kind->name);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    CODE(finish(&owner), "robust.%s.waiter.owner", kind->name);
    CODE(finish(&waiter), "robust.%s.waiter.inherits", kind->name);
    CODE(probe(&mutex), "robust.%s.waiter.free-after", kind->name);
}

int main(void) {
    for EACH(kind, MUTEX_KINDS) {
        for EACH(way, WAYS)
            for (int shared = 0; shared <= 1; shared++)
                for (int protocol = 0; protocol <= 1; protocol++) {
                    char name[100];
                    snprintf(name, sizeof name, "robust.%s.%s.%s%s", kind->name, way->name,
                             shared ? "process" : "thread", protocol ? ".inherit" : "");
                    char lost[120];
                    snprintf(lost, sizeof lost, "%s.left", name);
                    pthread_mutex_t *mutex = shared_memory(4096);
                    make_mutex(mutex, kind->type, shared, PTHREAD_MUTEX_ROBUST, protocol);
                    mended(name, mutex, shared, way);
                    abandoned(lost, mutex, shared, way);
                    munmap(mutex, 4096);
                }
        waiter_inherits(kind);
    }
    pthread_mutex_t ordinary = PTHREAD_MUTEX_INITIALIZER;
    CODE(pthread_mutex_consistent(&ordinary), "robust.consistent-of-ordinary");
    return 0;
}
