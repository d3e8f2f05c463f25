/* Several threads at one mutex: nothing is lost, no thread is inside with another, and memory may go
 * as soon as the last owner is out. */
#include "case.h"

static pthread_mutex_t mutex;
static long counted, inside, worst, rounds;
static struct timespec far_away;

static void enter(void) {
    long together = __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
    if (together > worst) worst = together;
    counted++;
    __atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
}

static void by_lock(long index) {
    (void)index;
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        enter();
        pthread_mutex_unlock(&mutex);
    }
}

static void by_trylock(long index) {
    (void)index;
    for (long i = 0; i < rounds; i++) {
        while (pthread_mutex_trylock(&mutex) != 0) sched_yield();
        enter();
        pthread_mutex_unlock(&mutex);
    }
}

static void by_timedlock(long index) {
    (void)index;
    for (long i = 0; i < rounds; i++) {
        NEED(pthread_mutex_timedlock(&mutex, &far_away) == 0);
        enter();
        pthread_mutex_unlock(&mutex);
    }
}

/* Gives up now and then, which a queue has to survive. */
static void by_short_timedlock(long index) {
    (void)index;
    for (long i = 0; i < rounds; i++) {
        struct timespec soon;
        do soon = after_ms(CLOCK_REALTIME, 1);
        while (pthread_mutex_timedlock(&mutex, &soon) != 0);
        enter();
        pthread_mutex_unlock(&mutex);
    }
}

static void by_turns(long index) {
    void (*const ways[])(long) = {by_lock, by_trylock, by_timedlock, by_short_timedlock};
    ways[index % 4](index);
}

static void long_sections(long index) {
    (void)index;
    for (long i = 0; i < rounds / 50 + 1; i++) {
        pthread_mutex_lock(&mutex);
        enter();
        pause_ms(1);
        pthread_mutex_unlock(&mutex);
    }
}

static void nested(long index) {
    (void)index;
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_lock(&mutex);
        NEED(pthread_mutex_trylock(&mutex) == 0);
        enter();
        pthread_mutex_unlock(&mutex);
        pthread_mutex_unlock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void race(const char *name, const struct mutex_kind *kind, int threads, void (*body)(long), long entries) {
    make_mutex_of_type(&mutex, kind->type);
    counted = worst = 0;
    crew(threads, body);
    HOLDS(counted == threads * entries, "contended.%s.%s.nothing-lost", kind->name, name);
    HOLDS(worst == 1, "contended.%s.%s.one-at-a-time", kind->name, name);
    CODE(probe(&mutex), "contended.%s.%s.free-after", kind->name, name);
    CODE(pthread_mutex_destroy(&mutex), "contended.%s.%s.destroy", kind->name, name);
}

struct last_user {
    pthread_mutex_t mutex;
    int users;
};

/* The last thread unmaps the memory: an unlock that touched it after letting go would crash. */
static int leave(void *argument) {
    struct last_user *shared = argument;
    pthread_mutex_lock(&shared->mutex);
    bool last = --shared->users == 0;
    pthread_mutex_unlock(&shared->mutex);
    if (last) munmap(shared, 4096);
    return 0;
}

static void memory_goes_with_the_last_owner(const struct mutex_kind *kind) {
    for (int i = 0; i < 150; i++) {
        struct last_user *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        NEED(shared != MAP_FAILED);
        make_mutex_of_type(&shared->mutex, kind->type);
        shared->users = 2;
        struct other other = {};
        other.call = leave;
        other.object = shared;
        NEED(pthread_create(&other.thread, NULL, other_main, &other) == 0);
        leave(shared);
        finish(&other);
    }
    HOLDS(true, "contended.%s.memory-unmapped-by-last-owner", kind->name);
}

/* A semaphore in the guise of a mutex: POSIX leaves it undefined, glibc's normal mutex lets it work
 * and programs rely on that. */
static void released_by_another_thread(void) {
    pthread_mutex_t gate;
    make_mutex_of_type(&gate, PTHREAD_MUTEX_NORMAL);
    CODE(pthread_mutex_lock(&gate), "contended.gate.lock");
    struct other waiter;
    begin(&waiter, lock_unlock, &gate);
    HOLDS(!is_done(&waiter), "contended.gate.waits");
    CODE(ELSEWHERE(pthread_mutex_unlock, &gate), "contended.gate.unlock-elsewhere");
    CODE(finish(&waiter), "contended.gate.waiter");
    CODE(probe(&gate), "contended.gate.free-after");
}

/* A thread that ends while it holds a mutex leaves it held. */
static void owner_exits(const struct mutex_kind *kind) {
    pthread_mutex_t left;
    make_mutex_of_type(&left, kind->type);
    CODE(ELSEWHERE(pthread_mutex_lock, &left), "contended.%s.owner-exits.lock", kind->name);
    CODE(probe(&left), "contended.%s.owner-exits.still-held", kind->name);
    struct timespec soon = after_ms(CLOCK_REALTIME, 3);
    CODE(pthread_mutex_timedlock(&left, &soon), "contended.%s.owner-exits.timedlock", kind->name);
}

int main(void) {
    far_away = after_ms(CLOCK_REALTIME, 60000);
    for EACH(kind, MUTEX_KINDS) {
        rounds = scaled(400);
        race("lock", kind, 4, by_lock, rounds);
        race("trylock", kind, 3, by_trylock, rounds);
        race("timedlock", kind, 3, by_timedlock, rounds);
        race("short-timedlock", kind, 3, by_short_timedlock, rounds);
        race("all-ways", kind, 4, by_turns, rounds);
        race("long-sections", kind, 3, long_sections, rounds / 50 + 1);
        rounds = scaled(60);
        race("16-threads", kind, 16, by_lock, rounds);
        memory_goes_with_the_last_owner(kind);
        owner_exits(kind);
    }
    rounds = scaled(300);
    race("nested", &MUTEX_KINDS[1], 4, nested, rounds);
    released_by_another_thread();
    return 0;
}
