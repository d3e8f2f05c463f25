/* pthread_mutex_timedlock and _clocklock: every kind, each clock, each sort of moment, free and
   held. */
#include "case.h"

struct way {
    const char *name;
    clockid_t clock;
    bool timedlock;
};

static const struct way WAYS[] = {
    {"timedlock", CLOCK_REALTIME, true},
    {"clocklock-realtime", CLOCK_REALTIME, false},
    {"clocklock-monotonic", CLOCK_MONOTONIC, false},
};

struct attempt {
    pthread_mutex_t *mutex;
    const struct way *way;
    struct timespec until;
};

static int attempt(void *argument) {
    struct attempt *a = argument;
    if (a->way->timedlock) return pthread_mutex_timedlock(a->mutex, &a->until);
    return pthread_mutex_clocklock(a->mutex, a->way->clock, &a->until);
}

static int attempt_and_unlock(void *argument) {
    struct attempt *a = argument;
    int code = attempt(a);
    if (code == 0) pthread_mutex_unlock(a->mutex);
    return code;
}

static struct timespec odd(clockid_t clock, long seconds, long nanoseconds) {
    struct timespec t = after_ms(clock, 0);
    return (struct timespec){seconds == 0 ? t.tv_sec + 5 : seconds, nanoseconds};
}

/* Moments at which no thread need wait, or that are none. */
static void moments(const char *state, const struct mutex_kind *kind, const struct way *way, pthread_mutex_t *mutex,
                    Call attempt) {
    const struct {
        const char *name;
        struct timespec until;
    } list[] = {
        {"past", after_ms(way->clock, -50)},
        {"epoch", {0, 0}},
        {"before-epoch", {-1, 0}},
        {"nanoseconds-10^9", odd(way->clock, 0, 1000000000)},
        {"nanoseconds-negative", odd(way->clock, 0, -1)},
        {"nanoseconds-10^9-in-the-past", odd(way->clock, 1, 1000000000)},
        {"nanoseconds-negative-before-epoch", odd(way->clock, -5, -1)},
    };
    for EACH(moment, list) {
        struct attempt a = {mutex, way, moment->until};
        CODE(strcmp(state, "held") ? attempt(&a) : ELSEWHERE(attempt, &a), "%s.%s.%s.%s", way->name, kind->name, state,
             moment->name);
    }
}

static void waiting_in_vain(const struct mutex_kind *kind, const struct way *way, pthread_mutex_t *mutex) {
    struct timespec start = now(CLOCK_MONOTONIC);
    struct attempt a = {mutex, way, after_ms(way->clock, 8)};
    CODE(ELSEWHERE(attempt_and_unlock, &a), "%s.%s.held.8-ms", way->name, kind->name);
    HOLDS(ms_since(start) >= 8, "%s.%s.held.waited-8-ms", way->name, kind->name);
    CODE(ELSEWHERE(probe, mutex), "%s.%s.held.still-held", way->name, kind->name);
}

static void released_before(const char *moment, struct timespec until, const struct mutex_kind *kind,
                            const struct way *way, pthread_mutex_t *mutex) {
    struct timespec start = now(CLOCK_MONOTONIC);
    struct attempt a = {mutex, way, until};
    struct other waiter;
    begin(&waiter, attempt_and_unlock, &a);
    HOLDS(!is_done(&waiter), "%s.%s.released-before-%s.waits", way->name, kind->name, moment);
    CODE(pthread_mutex_unlock(mutex), "%s.%s.released-before-%s.unlock", way->name, kind->name, moment);
    CODE(finish(&waiter), "%s.%s.released-before-%s.code", way->name, kind->name, moment);
    HOLDS(ms_since(start) < 15000, "%s.%s.released-before-%s.in-time", way->name, kind->name, moment);
    CODE(pthread_mutex_trylock(mutex), "%s.%s.released-before-%s.free-again", way->name, kind->name, moment);
}

/* The owner itself, at moments that exist and that do not. */
static void by_the_owner(const struct mutex_kind *kind, const struct way *way, pthread_mutex_t *mutex) {
    struct attempt soon = {mutex, way, after_ms(way->clock, 4)};
    CODE(attempt_and_unlock(&soon), "%s.%s.owner.4-ms", way->name, kind->name);
    moments("owner", kind, way, mutex, attempt_and_unlock);
}

static void clocks_that_are_none(const struct mutex_kind *kind, pthread_mutex_t *mutex, const char *state) {
    const struct {
        const char *name;
        clockid_t id;
    } clocks[] = {{"process-cpu", CLOCK_PROCESS_CPUTIME_ID}, {"thread-cpu", CLOCK_THREAD_CPUTIME_ID},
                  {"monotonic-raw", CLOCK_MONOTONIC_RAW},    {"boot", CLOCK_BOOTTIME},
                  {"negative", -1},                          {"99", 99}};
    for EACH(clock, clocks) {
        struct timespec later = after_ms(CLOCK_REALTIME, 100), invalid = {1, -1};
        CODE(pthread_mutex_clocklock(mutex, clock->id, &later), "clocklock.%s.%s.clock-%s", kind->name, state, clock->name);
        CODE(pthread_mutex_clocklock(mutex, clock->id, &invalid), "clocklock.%s.%s.clock-%s.invalid-time", kind->name,
             state, clock->name);
    }
}

int main(void) {
    for EACH(kind, MUTEX_KINDS) {
        pthread_mutex_t mutex;
        make_mutex_of_type(&mutex, kind->type);
        clocks_that_are_none(kind, &mutex, "free");
        for EACH(way, WAYS) {
            moments("free", kind, way, &mutex, attempt_and_unlock);
            struct attempt later = {&mutex, way, after_ms(way->clock, 20000)};
            CODE(attempt(&later), "%s.%s.free.20-s", way->name, kind->name);
            moments("held", kind, way, &mutex, attempt_and_unlock);
            waiting_in_vain(kind, way, &mutex);
            by_the_owner(kind, way, &mutex);
            released_before("20-s", after_ms(way->clock, 20000), kind, way, &mutex);
            released_before("the-end-of-time", (struct timespec){INT64_MAX, 999999999}, kind, way, &mutex);
            CODE(pthread_mutex_unlock(&mutex), "%s.%s.unlock", way->name, kind->name);
        }
        pthread_mutex_lock(&mutex);
        clocks_that_are_none(kind, &mutex, "held");
        pthread_mutex_unlock(&mutex);
        CODE(pthread_mutex_destroy(&mutex), "timed.%s.destroy", kind->name);
    }
    return 0;
}
