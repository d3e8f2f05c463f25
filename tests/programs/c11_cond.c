/* C11 condition variables, call_once, threads and thread-specific storage. */
#include "case_c11.h"

static mtx_t mutex;
static cnd_t cond;
static int waiting, tokens, woken;

static int take_token(void *timed) {
    struct timespec later = after_ms(CLOCK_REALTIME, 20000);
    int code = mtx_lock(&mutex);
    waiting++;
    while (tokens == 0 && code == thrd_success) code = timed ? cnd_timedwait(&cond, &mutex, &later) : cnd_wait(&cond, &mutex);
    tokens--;
    woken++;
    mtx_unlock(&mutex);
    return code;
}

static void start(struct other *waiters, int count, const char *kind, bool timed) {
    waiting = woken = tokens = 0;
    for (int i = 0; i < count; i++) begin(&waiters[i], take_token, timed ? &mutex : NULL);
    mtx_lock(&mutex);
    VALUE(waiting, "cnd.%s.%s.waiting", kind, timed ? "timedwait" : "wait");
    mtx_unlock(&mutex);
}

static int woken_when(int expected) {
    int count = 0;
    for (int patience = 0; patience < 5000; patience++) {
        mtx_lock(&mutex);
        count = woken;
        mtx_unlock(&mutex);
        if (count >= expected) break;
        pause_ms(1);
    }
    return count;
}

static void signals(const char *kind, bool timed) {
    struct other waiters[4];
    const char *way = timed ? "timedwait" : "wait";
    start(waiters, 4, kind, timed);
    mtx_lock(&mutex);
    tokens++;
    RESULT(cnd_signal(&cond), "cnd.%s.%s.signal", kind, way);
    mtx_unlock(&mutex);
    VALUE(woken_when(1), "cnd.%s.%s.woken-by-signal", kind, way);
    mtx_lock(&mutex);
    tokens += 3;
    RESULT(cnd_broadcast(&cond), "cnd.%s.%s.broadcast", kind, way);
    mtx_unlock(&mutex);
    for (int i = 0; i < 4; i++) RESULT(finish(&waiters[i]), "cnd.%s.%s.waiter-%d", kind, way, i);
    VALUE(tokens, "cnd.%s.%s.tokens-left", kind, way);
}

static int probe_c11(void *mutex) {
    int code = mtx_trylock(mutex);
    if (code == thrd_success) mtx_unlock(mutex);
    return code;
}

static void moments(const char *kind) {
    const struct {
        const char *name;
        struct timespec until;
    } list[] = {
        {"past", after_ms(CLOCK_REALTIME, -50)},
        {"epoch", {0, 0}},
        {"before-epoch", {-1, 0}},
        {"nanoseconds-10^9", {after_ms(CLOCK_REALTIME, 5000).tv_sec, 1000000000}},
        {"nanoseconds-negative", {after_ms(CLOCK_REALTIME, 5000).tv_sec, -1}},
        {"5-ms", after_ms(CLOCK_REALTIME, 5)},
    };
    for EACH(moment, list) {
        mtx_lock(&mutex);
        RESULT(cnd_timedwait(&cond, &mutex, &moment->until), "cnd.%s.%s", kind, moment->name);
        RESULT(ELSEWHERE(probe_c11, &mutex), "cnd.%s.%s.mutex-held", kind, moment->name);
        RESULT(mtx_unlock(&mutex), "cnd.%s.%s.unlock", kind, moment->name);
    }
}

static long turns, rounds;

static int take_turns(void *mine) {
    for (int i = 0; i < rounds; i++) {
        mtx_lock(&mutex);
        while (turns % 2 != (long)mine) cnd_wait(&cond, &mutex);
        turns++;
        cnd_signal(&cond);
        mtx_unlock(&mutex);
    }
    thrd_exit(7 + (int)(long)mine);
}

static void hand_to_and_fro(const char *kind) {
    thrd_t threads[2];
    turns = 0;
    rounds = scaled(100);
    for (long i = 0; i < 2; i++) RESULT(thrd_create(&threads[i], take_turns, (void *)i), "cnd.%s.turns.create-%ld", kind, i);
    for (int i = 0; i < 2; i++) {
        int value;
        RESULT(thrd_join(threads[i], &value), "cnd.%s.turns.join-%d", kind, i);
        VALUE(value, "cnd.%s.turns.value-%d", kind, i);
    }
    HOLDS(turns == 2 * rounds, "cnd.%s.turns", kind);
}

static once_flag once = ONCE_FLAG_INIT, slow_once = ONCE_FLAG_INIT;
static int once_calls, slow_calls, seen_unfinished;

static void called_once(void) { once_calls++; }

static void called_slowly(void) {
    pause_ms(8);
    __atomic_add_fetch(&slow_calls, 1, __ATOMIC_RELEASE);
}

static void race_to_once(long index) {
    (void)index;
    call_once(&slow_once, called_slowly);
    if (__atomic_load_n(&slow_calls, __ATOMIC_ACQUIRE) != 1) __atomic_store_n(&seen_unfinished, 1, __ATOMIC_RELAXED);
}

static void once_cases(void) {
    for (int i = 0; i < 3; i++) {
        call_once(&once, called_once);
        VALUE(once_calls, "call_once.calls-after-%d", i + 1);
    }
    crew(8, race_to_once);
    VALUE(slow_calls, "call_once.race.calls");
    HOLDS(!seen_unfinished, "call_once.race.all-saw-it-finished");
}

static tss_t storage;
static int destructors_with_mutex;

static void destroy_storage(void *value) {
    (void)value;
    if (mtx_lock(&mutex) != thrd_success) return;
    destructors_with_mutex++;
    mtx_unlock(&mutex);
}

static void use_storage(long index) {
    tss_set(storage, (void *)(index + 1));
    mtx_lock(&mutex);
    mtx_unlock(&mutex);
}

int main(void) {
    const struct {
        const char *name;
        int type;
    } kinds[] = {{"plain", mtx_plain}, {"timed", mtx_timed}, {"recursive", mtx_plain | mtx_recursive}};
    for EACH(kind, kinds) {
        NEED(mtx_init(&mutex, kind->type) == thrd_success);
        memset(&cond, 0xff, sizeof cond);
        RESULT(cnd_init(&cond), "cnd.%s.init", kind->name);
        RESULT(cnd_signal(&cond), "cnd.%s.signal-for-nobody", kind->name);
        RESULT(cnd_broadcast(&cond), "cnd.%s.broadcast-for-nobody", kind->name);
        signals(kind->name, false);
        signals(kind->name, true);
        moments(kind->name);
        hand_to_and_fro(kind->name);
        if (kind->type & mtx_recursive) RESULT(cnd_wait(&cond, &mutex), "cnd.%s.not-owned", kind->name);
        cnd_destroy(&cond);
        mtx_destroy(&mutex);
    }
    once_cases();
    NEED(mtx_init(&mutex, mtx_plain) == thrd_success);
    RESULT(tss_create(&storage, destroy_storage), "tss.create");
    crew(3, use_storage);
    VALUE(destructors_with_mutex, "tss.destructors-lock");
    return 0;
}
