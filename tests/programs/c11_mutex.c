/* C11 mutexes: every type, every function, every result. */
#include "case_c11.h"

struct kind {
    const char *name;
    int type;
};

static const struct kind KINDS[] = {
    {"plain", mtx_plain},
    {"timed", mtx_timed},
    {"plain-recursive", mtx_plain | mtx_recursive},
    {"timed-recursive", mtx_timed | mtx_recursive},
};

static int lock_and_leave(void *mutex) {
    int code = mtx_lock(mutex);
    return code == thrd_success ? mtx_unlock(mutex) : code;
}

static int probe_c11(void *mutex) {
    int code = mtx_trylock(mutex);
    if (code == thrd_success) mtx_unlock(mutex);
    return code;
}

static int timedlock_briefly(void *mutex) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 5);
    return mtx_timedlock(mutex, &soon);
}

static int timedlock_past(void *mutex) {
    struct timespec past = {1, 0};
    return mtx_timedlock(mutex, &past);
}

static int timedlock_invalid(void *mutex) {
    struct timespec invalid = {after_ms(CLOCK_REALTIME, 5000).tv_sec, 1000000000};
    return mtx_timedlock(mutex, &invalid);
}

static int timedlock_later(void *mutex) {
    struct timespec later = after_ms(CLOCK_REALTIME, 20000);
    int code = mtx_timedlock(mutex, &later);
    return code == thrd_success ? mtx_unlock(mutex) : code;
}

static void held(const char *kind, mtx_t *mutex, bool recursive) {
    RESULT(mtx_lock(mutex), "mtx.%s.lock", kind);
    RESULT(ELSEWHERE(mtx_trylock, mutex), "mtx.%s.held.trylock-elsewhere", kind);
    struct timespec start = now(CLOCK_MONOTONIC);
    RESULT(ELSEWHERE(timedlock_briefly, mutex), "mtx.%s.held.timedlock-elsewhere", kind);
    HOLDS(ms_since(start) >= 5, "mtx.%s.held.waited-5-ms", kind);
    RESULT(ELSEWHERE(timedlock_past, mutex), "mtx.%s.held.timedlock-past-elsewhere", kind);
    RESULT(ELSEWHERE(timedlock_invalid, mutex), "mtx.%s.held.timedlock-invalid-elsewhere", kind);
    RESULT(mtx_trylock(mutex), "mtx.%s.held.trylock-owner", kind);
    RESULT(timedlock_briefly(mutex), "mtx.%s.held.timedlock-owner", kind);
    if (recursive) {
        RESULT(mtx_lock(mutex), "mtx.%s.held.lock-owner", kind);
        RESULT(ELSEWHERE(mtx_unlock, mutex), "mtx.%s.held.unlock-elsewhere", kind);
        for (int depth = 4; depth > 1; depth--) {
            RESULT(ELSEWHERE(probe_c11, mutex), "mtx.%s.depth-%d.probe", kind, depth);
            RESULT(mtx_unlock(mutex), "mtx.%s.depth-%d.unlock", kind, depth);
        }
    }
    RESULT(ELSEWHERE(probe_c11, mutex), "mtx.%s.held.still", kind);
    RESULT(mtx_unlock(mutex), "mtx.%s.unlock", kind);
}

static void waited_for(const char *kind, mtx_t *mutex) {
    const struct {
        const char *name;
        Call call;
    } ways[] = {{"lock", lock_and_leave}, {"timedlock", timedlock_later}};
    for EACH(way, ways) {
        struct other waiter;
        mtx_lock(mutex);
        begin(&waiter, way->call, mutex);
        HOLDS(!is_done(&waiter), "mtx.%s.%s.waits", kind, way->name);
        RESULT(mtx_unlock(mutex), "mtx.%s.%s.release", kind, way->name);
        RESULT(finish(&waiter), "mtx.%s.%s.waiter", kind, way->name);
    }
}

static void free_again(const char *kind, mtx_t *mutex, bool recursive) {
    if (recursive) RESULT(mtx_unlock(mutex), "mtx.%s.free.unlock", kind);
    RESULT(mtx_trylock(mutex), "mtx.%s.free.trylock", kind);
    RESULT(ELSEWHERE(mtx_trylock, mutex), "mtx.%s.free.trylock-has-locked", kind);
    RESULT(mtx_unlock(mutex), "mtx.%s.free.trylock-unlock", kind);
    RESULT(timedlock_past(mutex), "mtx.%s.free.timedlock-past", kind);
    RESULT(mtx_unlock(mutex), "mtx.%s.free.timedlock-past-unlock", kind);
    RESULT(timedlock_invalid(mutex), "mtx.%s.free.timedlock-invalid", kind);
    RESULT(mtx_unlock(mutex), "mtx.%s.free.timedlock-invalid-unlock", kind);
}

static mtx_t counted_mutex;
static long counted, rounds;

static int count(void *index) {
    for (long i = 0; i < rounds; i++) {
        struct timespec later = after_ms(CLOCK_REALTIME, 30000);
        switch ((i + (long)index) % 3) {
            case 0: NEED(mtx_lock(&counted_mutex) == thrd_success); break;
            case 1:
                while (mtx_trylock(&counted_mutex) != thrd_success) thrd_yield();
                break;
            default: NEED(mtx_timedlock(&counted_mutex, &later) == thrd_success);
        }
        counted++;
        NEED(mtx_unlock(&counted_mutex) == thrd_success);
    }
    return (int)(long)index + 40;
}

static void contended(const struct kind *kind) {
    thrd_t threads[4];
    NEED(mtx_init(&counted_mutex, kind->type) == thrd_success);
    counted = 0;
    for (long i = 0; i < 4; i++) RESULT(thrd_create(&threads[i], count, (void *)i), "mtx.%s.contended.create-%ld", kind->name, i);
    for (int i = 0; i < 4; i++) {
        int value = 0;
        RESULT(thrd_join(threads[i], &value), "mtx.%s.contended.join-%d", kind->name, i);
        VALUE(value, "mtx.%s.contended.value-%d", kind->name, i);
    }
    HOLDS(counted == 4 * rounds, "mtx.%s.contended.nothing-lost", kind->name);
    mtx_destroy(&counted_mutex);
}

static void between_guards(void) {
    struct {
        uint64_t before;
        mtx_t mutex;
        uint64_t after;
    } placed = {0xa5a5a5a5a5a5a5a5, {}, 0xa5a5a5a5a5a5a5a5};
    memset(&placed.mutex, 0xff, sizeof placed.mutex);
    RESULT(mtx_init(&placed.mutex, mtx_plain), "mtx.guarded.init");
    RESULT(lock_and_leave(&placed.mutex), "mtx.guarded.lock");
    mtx_destroy(&placed.mutex);
    HOLDS(placed.before == 0xa5a5a5a5a5a5a5a5 && placed.after == placed.before, "mtx.guarded.neighbours-untouched");
}

int main(void) {
    rounds = scaled(300);
    for EACH(kind, KINDS) {
        bool recursive = kind->type & mtx_recursive;
        mtx_t mutex;
        memset(&mutex, 0xff, sizeof mutex);
        RESULT(mtx_init(&mutex, kind->type), "mtx.%s.init", kind->name);
        held(kind->name, &mutex, recursive);
        waited_for(kind->name, &mutex);
        free_again(kind->name, &mutex, recursive);
        mtx_destroy(&mutex);
        RESULT(mtx_init(&mutex, kind->type), "mtx.%s.made-again.init", kind->name);
        RESULT(lock_and_leave(&mutex), "mtx.%s.made-again.lock", kind->name);
        mtx_destroy(&mutex);
        RESULT(mtx_lock(&mutex), "mtx.%s.destroyed.lock", kind->name);
        contended(kind);
    }
    const int nonsense[] = {-1, 4, 77};
    mtx_t mutex;
    for EACH(type, nonsense) RESULT(mtx_init(&mutex, *type), "mtx.init-with-%d", *type);
    between_guards();
    return 0;
}
