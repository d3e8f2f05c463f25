/* Condition variables and clocks: each wait, each clock attribute, each sort of moment. */
#include "case.h"

static pthread_mutex_t mutex;
static pthread_cond_t cond;

struct way {
    const char *name;
    bool clockwait;
    clockid_t clock;
};

static const struct way WAYS[] = {
    {"timedwait", false, CLOCK_REALTIME},
    {"clockwait-realtime", true, CLOCK_REALTIME},
    {"clockwait-monotonic", true, CLOCK_MONOTONIC},
};

static int wait_until(const struct way *way, const struct timespec *until) {
    return way->clockwait ? pthread_cond_clockwait(&cond, &mutex, way->clock, until)
                          : pthread_cond_timedwait(&cond, &mutex, until);
}

static void moments(const char *attribute, const struct way *way, clockid_t clock) {
    struct timespec start = now(CLOCK_MONOTONIC);
    const struct {
        const char *name;
        struct timespec until;
    } list[] = {
        {"past", after_ms(clock, -50)},
        {"epoch", {0, 0}},
        {"before-epoch", {-1, 0}},
        {"nanoseconds-10^9", {after_ms(clock, 5000).tv_sec, 1000000000}},
        {"nanoseconds-negative", {after_ms(clock, 5000).tv_sec, -1}},
        {"nanoseconds-10^9-in-the-past", {1, 1000000000}},
        {"6-ms", after_ms(clock, 6)},
    };
    for EACH(moment, list) {
        pthread_mutex_lock(&mutex);
        CODE(wait_until(way, &moment->until), "cond.%s.%s.%s", attribute, way->name, moment->name);
        CODE(ELSEWHERE(probe, &mutex), "cond.%s.%s.%s.mutex-held", attribute, way->name, moment->name);
        CODE(pthread_mutex_unlock(&mutex), "cond.%s.%s.%s.unlock", attribute, way->name, moment->name);
    }
    HOLDS(ms_since(start) >= 6, "cond.%s.%s.waited-6-ms", attribute, way->name);
}

static int ready;

struct long_wait {
    const struct way *way;
    struct timespec until;
};

static int wait_long(void *argument) {
    struct long_wait *wait = argument;
    pthread_mutex_lock(&mutex);
    int code = 0;
    while (!ready && code == 0) code = wait_until(wait->way, &wait->until);
    pthread_mutex_unlock(&mutex);
    return code;
}

static void signalled_before(const char *moment, struct timespec until, const char *attribute, const struct way *way) {
    struct timespec start = now(CLOCK_MONOTONIC);
    struct long_wait wait = {way, until};
    struct other waiter;
    ready = 0;
    begin(&waiter, wait_long, &wait);
    HOLDS(!is_done(&waiter), "cond.%s.%s.before-%s.waits", attribute, way->name, moment);
    pthread_mutex_lock(&mutex);
    ready = 1;
    CODE(pthread_cond_signal(&cond), "cond.%s.%s.before-%s.signal", attribute, way->name, moment);
    pthread_mutex_unlock(&mutex);
    CODE(finish(&waiter), "cond.%s.%s.before-%s.signalled", attribute, way->name, moment);
    HOLDS(ms_since(start) < 15000, "cond.%s.%s.before-%s.in-time", attribute, way->name, moment);
}

/* The wall clock is far ahead of the monotonic one: a moment read on the wrong clock is years
   off. */
static void the_right_clock(const char *attribute, clockid_t clock) {
    struct timespec until = after_ms(clock, 5);
    struct timespec start = now(CLOCK_MONOTONIC);
    pthread_mutex_lock(&mutex);
    CODE(pthread_cond_timedwait(&cond, &mutex, &until), "cond.%s.own-clock", attribute);
    HOLDS(ms_since(start) >= 4 && ms_since(start) < 10000, "cond.%s.own-clock.waits-5-ms", attribute);
    until = after_ms(CLOCK_MONOTONIC, 1);
    if (clock == CLOCK_REALTIME)
        CODE(pthread_cond_timedwait(&cond, &mutex, &until), "cond.%s.monotonic-moment-is-past", attribute);
    pthread_mutex_unlock(&mutex);
}

static void clocks_that_are_none(const char *attribute) {
    const clockid_t clocks[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, -1, 99};
    for EACH(clock, clocks) {
        struct timespec soon = after_ms(CLOCK_REALTIME, 50), invalid = {1, -1};
        pthread_mutex_lock(&mutex);
        CODE(pthread_cond_clockwait(&cond, &mutex, *clock, &soon), "cond.%s.clockwait.clock-%d", attribute, *clock);
        CODE(pthread_cond_clockwait(&cond, &mutex, *clock, &invalid), "cond.%s.clockwait.clock-%d.invalid", attribute, *clock);
        CODE(ELSEWHERE(probe, &mutex), "cond.%s.clockwait.clock-%d.mutex-held", attribute, *clock);
        pthread_mutex_unlock(&mutex);
    }
}

static void attributes(void) {
    pthread_condattr_t a;
    int value = -7;
    clockid_t clock = -7;
    CODE(pthread_condattr_init(&a), "condattr.init");
    pthread_condattr_getclock(&a, &clock);
    VALUE(clock, "condattr.clock.default");
    const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, -1, 99};
    for EACH(id, clocks) {
        CODE(pthread_condattr_setclock(&a, *id), "condattr.clock.set-%d", *id);
        pthread_condattr_getclock(&a, &clock);
        VALUE(clock, "condattr.clock.value-after-%d", *id);
    }
    for (int shared = -1; shared <= 2; shared++) {
        CODE(pthread_condattr_setpshared(&a, shared), "condattr.pshared.set-%d", shared);
        pthread_condattr_getpshared(&a, &value);
        VALUE(value, "condattr.pshared.value-after-%d", shared);
    }
    CODE(pthread_condattr_destroy(&a), "condattr.destroy");
}

static void with_clock(const char *attribute, clockid_t clock) {
    for EACH(way, WAYS) {
        clockid_t counts_on = way->clockwait ? way->clock : clock;
        moments(attribute, way, counts_on);
        signalled_before("20-s", after_ms(counts_on, 20000), attribute, way);
        signalled_before("the-end-of-time", (struct timespec){INT64_MAX, 999999999}, attribute, way);
    }
    the_right_clock(attribute, clock);
    clocks_that_are_none(attribute);
    CODE(pthread_cond_destroy(&cond), "cond.%s.destroy", attribute);
}

int main(void) {
    attributes();
    pthread_mutex_init(&mutex, NULL);
    for (int shared = 0; shared <= 1; shared++) {
        make_cond(&cond, shared, CLOCK_REALTIME);
        with_clock(shared ? "realtime-shared" : "realtime", CLOCK_REALTIME);
        make_cond(&cond, shared, CLOCK_MONOTONIC);
        with_clock(shared ? "monotonic-shared" : "monotonic", CLOCK_MONOTONIC);
    }
    CODE(pthread_cond_init(&cond, NULL), "cond.no-attributes.init");
    with_clock("no-attributes", CLOCK_REALTIME);
    return 0;
}
