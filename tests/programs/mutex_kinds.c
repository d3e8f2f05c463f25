/* Every kind of mutex, however it came to be, from its first lock to its destruction. */
#include "case.h"

static pthread_mutex_t initialised_statically[] = {
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
    PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
    PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
};

static int timedlock_in_the_past(void *mutex) {
    struct timespec past = after_ms(CLOCK_REALTIME, -1000);
    return pthread_mutex_timedlock(mutex, &past);
}

static int timedlock_briefly(void *mutex) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 3);
    return pthread_mutex_timedlock(mutex, &soon);
}

/* What the owner and others see of a mutex that is held once. Leaves it held once. */
static void held_once(const char *form, const char *kind, pthread_mutex_t *mutex, int type) {
    CODE(ELSEWHERE(pthread_mutex_trylock, mutex), "mutex.%s.%s.held.trylock-elsewhere", form, kind);
    CODE(ELSEWHERE(timedlock_in_the_past, mutex), "mutex.%s.%s.held.timedlock-past-elsewhere", form, kind);
    CODE(ELSEWHERE(timedlock_briefly, mutex), "mutex.%s.%s.held.timedlock-elsewhere", form, kind);
    CODE(pthread_mutex_destroy(mutex), "mutex.%s.%s.held.destroy", form, kind);
    /* Debuggers and assertions read it there. */
    HOLDS(mutex->__data.__owner == gettid(), "mutex.%s.%s.held.owner-is-visible", form, kind);
    if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
        CODE(ELSEWHERE(pthread_mutex_unlock, mutex), "mutex.%s.%s.held.unlock-elsewhere", form, kind);
    CODE(ELSEWHERE(probe, mutex), "mutex.%s.%s.held.still-held", form, kind);
}

/* The owner asks again. Leaves the mutex held once. */
static void owner_again(const char *form, const char *kind, pthread_mutex_t *mutex, int type) {
    CODE(pthread_mutex_trylock(mutex), "mutex.%s.%s.owner.trylock", form, kind);
    CODE(timedlock_briefly(mutex), "mutex.%s.%s.owner.timedlock", form, kind);
    CODE(timedlock_in_the_past(mutex), "mutex.%s.%s.owner.timedlock-past", form, kind);
    if (type == PTHREAD_MUTEX_ERRORCHECK) {
        CODE(pthread_mutex_lock(mutex), "mutex.%s.%s.owner.lock", form, kind);
    } else if (type == PTHREAD_MUTEX_RECURSIVE) {
        CODE(pthread_mutex_lock(mutex), "mutex.%s.%s.owner.lock", form, kind);
        for (int depth = 5; depth > 1; depth--) {
            CODE(ELSEWHERE(probe, mutex), "mutex.%s.%s.depth-%d.held-elsewhere", form, kind, depth);
            CODE(pthread_mutex_unlock(mutex), "mutex.%s.%s.depth-%d.unlock", form, kind, depth);
        }
    }
    CODE(ELSEWHERE(probe, mutex), "mutex.%s.%s.owner.still-held", form, kind);
}

static void after_destruction(const char *form, const char *kind, pthread_mutex_t *mutex, int type) {
    CODE(pthread_mutex_lock(mutex), "mutex.%s.%s.destroyed.lock", form, kind);
    CODE(pthread_mutex_trylock(mutex), "mutex.%s.%s.destroyed.trylock", form, kind);
    CODE(timedlock_briefly(mutex), "mutex.%s.%s.destroyed.timedlock", form, kind);
    CODE(pthread_mutex_unlock(mutex), "mutex.%s.%s.destroyed.unlock", form, kind);
    CODE(pthread_mutex_destroy(mutex), "mutex.%s.%s.destroyed.destroy", form, kind);
    make_mutex_of_type(mutex, type);
    CODE(pthread_mutex_lock(mutex), "mutex.%s.%s.made-again.lock", form, kind);
    CODE(pthread_mutex_unlock(mutex), "mutex.%s.%s.made-again.unlock", form, kind);
    CODE(pthread_mutex_destroy(mutex), "mutex.%s.%s.made-again.destroy", form, kind);
}

static void whole_life(const char *form, const char *kind, pthread_mutex_t *mutex, int type) {
    CODE(pthread_mutex_lock(mutex), "mutex.%s.%s.lock", form, kind);
    held_once(form, kind, mutex, type);
    owner_again(form, kind, mutex, type);
    CODE(pthread_mutex_unlock(mutex), "mutex.%s.%s.unlock", form, kind);
    CODE(ELSEWHERE(lock_unlock, mutex), "mutex.%s.%s.free.lock-elsewhere", form, kind);
    if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
        CODE(pthread_mutex_unlock(mutex), "mutex.%s.%s.free.unlock", form, kind);
    CODE(pthread_mutex_trylock(mutex), "mutex.%s.%s.free.trylock", form, kind);
    CODE(ELSEWHERE(probe, mutex), "mutex.%s.%s.free.trylock-has-locked", form, kind);
    CODE(pthread_mutex_unlock(mutex), "mutex.%s.%s.free.trylock-unlock", form, kind);
    CODE(timedlock_briefly(mutex), "mutex.%s.%s.free.timedlock", form, kind);
    CODE(pthread_mutex_unlock(mutex), "mutex.%s.%s.free.timedlock-unlock", form, kind);
    CODE(timedlock_in_the_past(mutex), "mutex.%s.%s.free.timedlock-past", form, kind);
    CODE(pthread_mutex_unlock(mutex), "mutex.%s.%s.free.timedlock-past-unlock", form, kind);
    CODE(pthread_mutex_destroy(mutex), "mutex.%s.%s.destroy", form, kind);
    after_destruction(form, kind, mutex, type);
}

/* A mutex of 8-byte alignment that is not 16-byte aligned, between guards that have to stay as they
   are. */
static void placed_badly(const struct mutex_kind *kind) {
    struct __attribute__((packed)) {
        uint64_t before;
        pthread_mutex_t mutex;
        uint64_t after;
    } *placed = aligned_alloc(64, 128);
    placed->before = placed->after = 0xa5a5a5a5a5a5a5a5;
    pthread_mutex_t *mutex = (pthread_mutex_t *)((char *)placed + sizeof(uint64_t));
    make_mutex_of_type(mutex, kind->type);
    whole_life("heap-8", kind->name, mutex, kind->type);
    HOLDS(placed->before == 0xa5a5a5a5a5a5a5a5 && placed->after == 0xa5a5a5a5a5a5a5a5,
          "mutex.heap-8.%s.neighbours-untouched", kind->name);
    free(placed);
}

/* Programs keep mutexes in arrays that grow: the bytes of a free mutex may move. */
static void moved_while_free(const struct mutex_kind *kind) {
    pthread_mutex_t original;
    make_mutex_of_type(&original, kind->type);
    lock_unlock(&original);
    pthread_mutex_t *moved = malloc(sizeof *moved);
    memcpy(moved, &original, sizeof *moved);
    memset(&original, 0xff, sizeof original);
    whole_life("moved", kind->name, moved, kind->type);
    free(moved);
}

int main(void) {
    for EACH(kind, MUTEX_KINDS) {
        pthread_mutex_t mutex;
        memset(&mutex, 0xff, sizeof mutex);
        make_mutex_of_type(&mutex, kind->type);
        whole_life("init", kind->name, &mutex, kind->type);
        whole_life("static", kind->name, &initialised_statically[kind - MUTEX_KINDS], kind->type);
        placed_badly(kind);
        moved_while_free(kind);
    }
    pthread_mutex_t default_mutex;
    CODE(pthread_mutex_init(&default_mutex, NULL), "mutex.no-attributes.init");
    whole_life("no-attributes", "default", &default_mutex, PTHREAD_MUTEX_DEFAULT);
    pthread_mutex_t *zeroed = calloc(1, sizeof *zeroed);
    whole_life("zeroed", "default", zeroed, PTHREAD_MUTEX_DEFAULT);
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    whole_life("on-the-stack", "default", &local, PTHREAD_MUTEX_DEFAULT);
    return 0;
}
