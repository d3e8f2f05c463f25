/* pthread_rwlock_timed* and _clock*: each clock, each sort of moment; free, read and written. */
#include "case.h"

struct way {
    const char *name;
    clockid_t clock;
    bool timedlock, write;
};

static const struct way WAYS[] = {
    {"timedrdlock", CLOCK_REALTIME, true, false},
    {"clockrdlock-realtime", CLOCK_REALTIME, false, false},
    {"clockrdlock-monotonic", CLOCK_MONOTONIC, false, false},
    {"timedwrlock", CLOCK_REALTIME, true, true},
    {"clockwrlock-realtime", CLOCK_REALTIME, false, true},
    {"clockwrlock-monotonic", CLOCK_MONOTONIC, false, true},
};

struct attempt {
    pthread_rwlock_t *lock;
    const struct way *way;
    struct timespec until;
};

static int attempt(void *argument) {
    struct attempt *a = argument;
    const struct way *way = a->way;
    int code;
    if (way->timedlock)
        code = way->write ? pthread_rwlock_timedwrlock(a->lock, &a->until) : pthread_rwlock_timedrdlock(a->lock, &a->until);
    else
        code = way->write ? pthread_rwlock_clockwrlock(a->lock, way->clock, &a->until)
                          : pthread_rwlock_clockrdlock(a->lock, way->clock, &a->until);
    if (code == 0) pthread_rwlock_unlock(a->lock);
    return code;
}

static void moments(const char *state, const struct way *way, pthread_rwlock_t *lock) {
    struct timespec start = now(CLOCK_MONOTONIC);
    const struct {
        const char *name;
        struct timespec until;
    } list[] = {
        {"past", after_ms(way->clock, -50)},
        {"epoch", {0, 0}},
        {"before-epoch", {-1, 0}},
        {"nanoseconds-10^9", {after_ms(way->clock, 5000).tv_sec, 1000000000}},
        {"nanoseconds-negative", {after_ms(way->clock, 5000).tv_sec, -1}},
        {"nanoseconds-10^9-in-the-past", {1, 1000000000}},
        {"nanoseconds-negative-before-epoch", {-5, -1}},
        {"4-ms", after_ms(way->clock, 4)},
    };
    for EACH(moment, list) {
        struct attempt a = {lock, way, moment->until};
        int code = elsewhere(attempt, &a);
        CODE(code, "%s.%s.%s", way->name, state, moment->name);
        if (strcmp(moment->name, "4-ms") == 0 && code == ETIMEDOUT)
            HOLDS(ms_since(start) >= 4, "%s.%s.waited-4-ms", way->name, state);
    }
}

static void released_before(const char *moment, struct timespec until, const struct way *way, pthread_rwlock_t *lock) {
    struct timespec start = now(CLOCK_MONOTONIC);
    struct attempt a = {lock, way, until};
    struct other waiter;
    pthread_rwlock_wrlock(lock);
    begin(&waiter, attempt, &a);
    HOLDS(!is_done(&waiter), "%s.released-before-%s.waits", way->name, moment);
    pthread_rwlock_unlock(lock);
    CODE(finish(&waiter), "%s.released-before-%s.code", way->name, moment);
    HOLDS(ms_since(start) < 15000, "%s.released-before-%s.in-time", way->name, moment);
}

static void clocks_that_are_none(const struct way *way, pthread_rwlock_t *lock, const char *state) {
    const clockid_t clocks[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, -1, 99};
    for EACH(clock, clocks) {
        struct way bad = {way->name, *clock, false, way->write};
        struct attempt a = {lock, &bad, after_ms(CLOCK_REALTIME, 100)};
        CODE(attempt(&a), "%s.%s.clock-%d", way->write ? "clockwrlock" : "clockrdlock", state, *clock);
    }
}

int main(void) {
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    for EACH(way, WAYS) {
        moments("free", way, &lock);
        pthread_rwlock_rdlock(&lock);
        moments("read", way, &lock);
        if (strcmp(way->name, "timedrdlock") == 0 || strcmp(way->name, "timedwrlock") == 0)
            clocks_that_are_none(way, &lock, "read");
        pthread_rwlock_unlock(&lock);
        pthread_rwlock_wrlock(&lock);
        moments("written", way, &lock);
        pthread_rwlock_unlock(&lock);
        released_before("20-s", after_ms(way->clock, 20000), way, &lock);
        released_before("the-end-of-time", (struct timespec){INT64_MAX, 999999999}, way, &lock);
        if (strcmp(way->name, "timedrdlock") == 0 || strcmp(way->name, "timedwrlock") == 0)
            clocks_that_are_none(way, &lock, "free");
    }
    CODE(pthread_rwlock_destroy(&lock), "rwlock-timed.destroy");
    return 0;
}
