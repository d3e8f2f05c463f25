/* Reader-writer locks: who gets in beside whom, what errors there are, every kind and every way to
   make one. */
#include "case.h"

struct kind {
    const char *name;
    int kind;
};

static const struct kind KINDS[] = {
    {"prefer-reader", PTHREAD_RWLOCK_PREFER_READER_NP},
    {"prefer-writer", PTHREAD_RWLOCK_PREFER_WRITER_NP},
    {"prefer-writer-nonrecursive", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP},
};

static pthread_rwlock_t static_reader = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t static_writer = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static int timed(pthread_rwlock_t *lock, bool write) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 3);
    return write ? pthread_rwlock_timedwrlock(lock, &soon) : pthread_rwlock_timedrdlock(lock, &soon);
}

static int timedrdlock(void *lock) { return timed((pthread_rwlock_t *)lock, false); }
static int timedwrlock(void *lock) { return timed((pthread_rwlock_t *)lock, true); }

static int read_and_leave(void *lock) {
    int code = pthread_rwlock_rdlock(lock);
    return code ? code : pthread_rwlock_unlock(lock);
}

static int tryread_and_leave(void *lock) {
    int code = pthread_rwlock_tryrdlock(lock);
    return code ? code : pthread_rwlock_unlock(lock);
}

static int write_and_leave(void *lock) {
    int code = pthread_rwlock_wrlock(lock);
    return code ? code : pthread_rwlock_unlock(lock);
}

static void written(const char *name, pthread_rwlock_t *lock) {
    CODE(pthread_rwlock_wrlock(lock), "rwlock.%s.write", name);
    CODE(ELSEWHERE(pthread_rwlock_tryrdlock, lock), "rwlock.%s.written.tryrdlock", name);
    CODE(ELSEWHERE(pthread_rwlock_trywrlock, lock), "rwlock.%s.written.trywrlock", name);
    CODE(ELSEWHERE(timedrdlock, lock), "rwlock.%s.written.timedrdlock", name);
    CODE(ELSEWHERE(timedwrlock, lock), "rwlock.%s.written.timedwrlock", name);
    CODE(pthread_rwlock_wrlock(lock), "rwlock.%s.written.owner-writes", name);
    CODE(pthread_rwlock_rdlock(lock), "rwlock.%s.written.owner-reads", name);
    CODE(pthread_rwlock_trywrlock(lock), "rwlock.%s.written.owner-trywrlock", name);
    CODE(pthread_rwlock_tryrdlock(lock), "rwlock.%s.written.owner-tryrdlock", name);
    CODE(timed(lock, true), "rwlock.%s.written.owner-timedwrlock", name);
    CODE(timed(lock, false), "rwlock.%s.written.owner-timedrdlock", name);
    CODE(pthread_rwlock_unlock(lock), "rwlock.%s.written.unlock", name);
}

static void read_by_some(const char *name, pthread_rwlock_t *lock) {
    CODE(pthread_rwlock_rdlock(lock), "rwlock.%s.read", name);
    CODE(ELSEWHERE(read_and_leave, lock), "rwlock.%s.read.rdlock-elsewhere", name);
    CODE(ELSEWHERE(tryread_and_leave, lock), "rwlock.%s.read.tryrdlock-elsewhere", name);
    CODE(ELSEWHERE(pthread_rwlock_trywrlock, lock), "rwlock.%s.read.trywrlock-elsewhere", name);
    CODE(ELSEWHERE(timedwrlock, lock), "rwlock.%s.read.timedwrlock-elsewhere", name);
    CODE(pthread_rwlock_rdlock(lock), "rwlock.%s.read.again", name);
    CODE(pthread_rwlock_tryrdlock(lock), "rwlock.%s.read.try-again", name);
    CODE(timed(lock, false), "rwlock.%s.read.timed-again", name);
    CODE(pthread_rwlock_trywrlock(lock), "rwlock.%s.read.upgrade-trywrlock", name);
    CODE(timed(lock, true), "rwlock.%s.read.upgrade-timedwrlock", name);
    for (int depth = 4; depth > 0; depth--) {
        CODE(ELSEWHERE(pthread_rwlock_trywrlock, lock), "rwlock.%s.read.depth-%d.trywrlock", name, depth);
        CODE(pthread_rwlock_unlock(lock), "rwlock.%s.read.depth-%d.unlock", name, depth);
    }
    CODE(ELSEWHERE(write_and_leave, lock), "rwlock.%s.read.then-written", name);
}

/* A reader elsewhere keeps the writer out; a writer's release lets a waiting reader and a waiting
   writer in. */
static void waiting(const char *name, pthread_rwlock_t *lock) {
    struct other waiter;
    pthread_rwlock_wrlock(lock);
    begin(&waiter, read_and_leave, lock);
    HOLDS(!is_done(&waiter), "rwlock.%s.reader-waits-for-writer", name);
    pthread_rwlock_unlock(lock);
    CODE(finish(&waiter), "rwlock.%s.reader-after-writer", name);
    pthread_rwlock_wrlock(lock);
    begin(&waiter, write_and_leave, lock);
    HOLDS(!is_done(&waiter), "rwlock.%s.writer-waits-for-writer", name);
    pthread_rwlock_unlock(lock);
    CODE(finish(&waiter), "rwlock.%s.writer-after-writer", name);
    pthread_rwlock_rdlock(lock);
    begin(&waiter, write_and_leave, lock);
    HOLDS(!is_done(&waiter), "rwlock.%s.writer-waits-for-reader", name);
    pthread_rwlock_unlock(lock);
    CODE(finish(&waiter), "rwlock.%s.writer-after-reader", name);
}

/* A reader comes while another reads and a writer waits. Only the nonrecursive kind turns it
   away. */
static void writer_waits(const char *name, pthread_rwlock_t *lock, bool recursive_ok) {
    struct other writer;
    pthread_rwlock_rdlock(lock);
    begin(&writer, write_and_leave, lock);
    HOLDS(!is_done(&writer), "rwlock.%s.writer-waits", name);
    CODE(ELSEWHERE(tryread_and_leave, lock), "rwlock.%s.writer-waits.tryrdlock-elsewhere", name);
    if (recursive_ok) {
        CODE(pthread_rwlock_rdlock(lock), "rwlock.%s.writer-waits.recursive-read", name);
        CODE(pthread_rwlock_unlock(lock), "rwlock.%s.writer-waits.recursive-unlock", name);
        CODE(ELSEWHERE(read_and_leave, lock), "rwlock.%s.writer-waits.rdlock-elsewhere", name);
    } else {
        CODE(ELSEWHERE(timedrdlock, lock), "rwlock.%s.writer-waits.timedrdlock-elsewhere", name);
        CODE(pthread_rwlock_tryrdlock(lock), "rwlock.%s.writer-waits.recursive-tryrdlock", name);
    }
    HOLDS(!is_done(&writer), "rwlock.%s.writer-waits.still", name);
    CODE(pthread_rwlock_unlock(lock), "rwlock.%s.writer-waits.unlock", name);
    CODE(finish(&writer), "rwlock.%s.writer-waits.writer", name);
}

static int write_briefly(void *lock) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 8);
    return pthread_rwlock_timedwrlock(lock, &soon);
}

/* A writer that gave up leaves nothing behind that would keep readers out. */
static void writer_gives_up(const char *name, pthread_rwlock_t *lock) {
    pthread_rwlock_rdlock(lock);
    CODE(ELSEWHERE(write_briefly, lock), "rwlock.%s.writer-gives-up", name);
    CODE(ELSEWHERE(read_and_leave, lock), "rwlock.%s.writer-gave-up.reader", name);
    CODE(ELSEWHERE(tryread_and_leave, lock), "rwlock.%s.writer-gave-up.tryreader", name);
    CODE(pthread_rwlock_unlock(lock), "rwlock.%s.writer-gave-up.unlock", name);
    CODE(ELSEWHERE(write_and_leave, lock), "rwlock.%s.writer-gave-up.writer", name);
}

static void whole_life(const char *name, pthread_rwlock_t *lock, bool recursive_ok) {
    written(name, lock);
    read_by_some(name, lock);
    waiting(name, lock);
    writer_waits(name, lock, recursive_ok);
    writer_gives_up(name, lock);
    CODE(pthread_rwlock_tryrdlock(lock), "rwlock.%s.free.tryrdlock", name);
    CODE(pthread_rwlock_unlock(lock), "rwlock.%s.free.tryrdlock-unlock", name);
    CODE(pthread_rwlock_trywrlock(lock), "rwlock.%s.free.trywrlock", name);
    CODE(ELSEWHERE(pthread_rwlock_tryrdlock, lock), "rwlock.%s.free.trywrlock-has-locked", name);
    CODE(pthread_rwlock_unlock(lock), "rwlock.%s.free.trywrlock-unlock", name);
    CODE(pthread_rwlock_destroy(lock), "rwlock.%s.destroy", name);
}

static void attributes(void) {
    pthread_rwlockattr_t a;
    int value = -7;
    CODE(pthread_rwlockattr_init(&a), "rwlockattr.init");
    for (int kind = -1; kind <= 3; kind++) {
        CODE(pthread_rwlockattr_setkind_np(&a, kind), "rwlockattr.kind.set-%d", kind);
        pthread_rwlockattr_getkind_np(&a, &value);
        VALUE(value, "rwlockattr.kind.value-after-%d", kind);
    }
    for (int shared = -1; shared <= 2; shared++) {
        CODE(pthread_rwlockattr_setpshared(&a, shared), "rwlockattr.pshared.set-%d", shared);
        pthread_rwlockattr_getpshared(&a, &value);
        VALUE(value, "rwlockattr.pshared.value-after-%d", shared);
    }
    CODE(pthread_rwlockattr_destroy(&a), "rwlockattr.destroy");
}

static void between_guards(void) {
    struct {
        uint64_t before;
        pthread_rwlock_t lock;
        uint64_t after;
    } placed = {0xa5a5a5a5a5a5a5a5, PTHREAD_RWLOCK_INITIALIZER, 0xa5a5a5a5a5a5a5a5};
    whole_life("guarded", &placed.lock, true);
    HOLDS(placed.before == 0xa5a5a5a5a5a5a5a5 && placed.after == placed.before, "rwlock.guarded.neighbours-untouched");
}

int main(void) {
    attributes();
    for EACH(kind, KINDS)
        for (int shared = 0; shared <= 1; shared++) {
            char name[64];
            snprintf(name, sizeof name, "%s.%s", kind->name, shared ? "shared" : "private");
            pthread_rwlockattr_t a;
            pthread_rwlockattr_init(&a);
            pthread_rwlockattr_setkind_np(&a, kind->kind);
            pthread_rwlockattr_setpshared(&a, shared);
            pthread_rwlock_t lock;
            memset(&lock, 0xff, sizeof lock);
            CODE(pthread_rwlock_init(&lock, &a), "rwlock.%s.init", name);
            pthread_rwlockattr_destroy(&a);
            whole_life(name, &lock, kind->kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        }
    whole_life("static", &static_reader, true);
    whole_life("static-writer", &static_writer, false);
    pthread_rwlock_t plain;
    CODE(pthread_rwlock_init(&plain, NULL), "rwlock.no-attributes.init");
    whole_life("no-attributes", &plain, true);
    pthread_rwlock_t *zeroed = calloc(1, sizeof *zeroed);
    whole_life("zeroed", zeroed, true);
    between_guards();
    return 0;
}
