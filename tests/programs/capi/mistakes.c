/* What every function says to a mistake; threads that end in a session. */
#include "expect.h"

#include <manycore/ldu.h>
#include <manycore/lock.h>
#include <manycore/rcu.h>
#include <manycore/rlu.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- statuses ---- */

static void statuses(void)
{
    int i, j;
    for (i = MANYCORE_OK; i <= MANYCORE_FAILED + 1; i++)
        for (j = MANYCORE_OK; j < i; j++)
            EXPECT(1, strcmp(manycore_strerror(i), manycore_strerror(j)) != 0);
    EXPECT(0, strcmp(manycore_strerror(-1), manycore_strerror(MANYCORE_FAILED + 1)));
    EXPECT(MANYCORE_VERSION, manycore_version());
}

/* ---- RLU ---- */

struct pair {
    long one, other;
};

struct shared {
    rlu_thread_data_t *self;
    struct pair *object;
};

static void *end_in_session(void *data)
{
    struct shared *shared = (struct shared *)data;
    struct pair *object = shared->object;
    RLU_READER_LOCK(shared->self);
    EXPECT(1, RLU_TRY_LOCK(shared->self, &object));
    object->one = 99;
    pthread_exit(NULL);
}

static void *session_of_another(void *data)
{
    struct shared *shared = (struct shared *)data;
    struct pair *object = shared->object;
    RLU_READER_LOCK(shared->self);
    EXPECT(0, RLU_TRY_LOCK(shared->self, &object));
    EXPECT(shared->object, object);
    EXPECT(0, RLU_TRY_LOCK_CONST(shared->self, object));
    EXPECT(1, object->one);
    RLU_ABORT(shared->self);

    RLU_READER_LOCK(shared->self);
    EXPECT(0, RLU_TRY_LOCK(shared->self, &object));
    /* a session that has met a conflict can only be aborted */
    EXPECT(0, RLU_READER_UNLOCK(shared->self));
    RLU_READER_LOCK(shared->self);
    EXPECT(1, RLU_READER_UNLOCK(shared->self));
    return NULL;
}

static void rlu_before_init(rlu_thread_data_t *self)
{
    manycore_rlu_stats_t stats;
    EXPECT(MANYCORE_NOT_INITIALIZED, RLU_THREAD_INIT(self));
    EXPECT(MANYCORE_NOT_INITIALIZED, RLU_THREAD_FINISH(self));
    EXPECT(MANYCORE_NOT_INITIALIZED, RLU_FINISH());
    EXPECT(MANYCORE_NOT_INITIALIZED, manycore_rlu_stats(&stats, sizeof stats));
    RLU_PRINT_STATS();
}

static void rlu_early(void)
{
    manycore_rlu_config_t config;
    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    EXPECT(1, RLU_ALLOC(8) != NULL);
    EXPECT(MANYCORE_ALREADY, manycore_rlu_init(&config));
    EXPECT(MANYCORE_OK, RLU_INIT());
    EXPECT(MANYCORE_ALREADY, RLU_INIT());
    EXPECT(MANYCORE_OK, RLU_FINISH());
}

static void rlu_config(void)
{
    manycore_rlu_config_t config;
    memset(&config, 0, sizeof config);
    EXPECT(MANYCORE_INVALID, manycore_rlu_init(&config));
    config.size = sizeof config;
    config.segment_bytes = 100;
    EXPECT(MANYCORE_INVALID, manycore_rlu_init(&config));
    config.segment_bytes = 64 << 10;
    config.segments = 1;
    EXPECT(MANYCORE_INVALID, manycore_rlu_init(&config));
    config.segments = 0;
    config.clock = 7;
    EXPECT(MANYCORE_INVALID, manycore_rlu_init(&config));
    config.clock = MANYCORE_CLOCK_COUNTER;
    EXPECT(MANYCORE_OK, manycore_rlu_init(&config));
    EXPECT(1, RLU_ALLOC(32752) != NULL);
    EXPECT(NULL, RLU_ALLOC(32753));
    EXPECT(MANYCORE_OK, RLU_FINISH());
    config.clock = MANYCORE_CLOCK_ORDO_RELAXED;
    EXPECT(MANYCORE_OK, manycore_rlu_init(&config));
    EXPECT(MANYCORE_OK, RLU_FINISH());
}

static void rlu_registration(rlu_thread_data_t *self)
{
    rlu_thread_data_t unknown;
    memset(&unknown, 0, sizeof unknown);
    EXPECT(MANYCORE_OK, RLU_INIT());
    EXPECT(MANYCORE_ALREADY, RLU_INIT(46));
    EXPECT(MANYCORE_ALREADY, RLU_INIT(RLU_TYPE_FINE_GRAINED, 1));
    EXPECT(MANYCORE_NULL, RLU_THREAD_INIT(NULL));
    EXPECT(MANYCORE_NULL, RLU_THREAD_FINISH(NULL));
    EXPECT(MANYCORE_NOT_REGISTERED, RLU_THREAD_FINISH(&unknown));
    EXPECT(MANYCORE_OK, RLU_THREAD_INIT(self));
    EXPECT(MANYCORE_ALREADY, RLU_THREAD_INIT(self));
    EXPECT(NULL, RLU_ALLOC(8177));
    EXPECT(NULL, RLU_ALLOC((size_t)-1));
    EXPECT(MANYCORE_NULL, manycore_rlu_stats(NULL, 0));
}

static void rlu_sessions(rlu_thread_data_t *self)
{
    struct pair *object = (struct pair *)RLU_ALLOC(sizeof *object), *copy = object;
    struct pair *fresh, *place = NULL;
    struct shared shared;
    rlu_thread_data_t *other = RLU_THREAD_ALLOC();

    EXPECT(0, object->one); /* zeroed */
    EXPECT(0, (size_t)object % 16);
    object->one = 1;
    EXPECT(MANYCORE_OK, RLU_THREAD_INIT(other));
    shared.self = other;
    shared.object = object;

    RLU_READER_LOCK(self);
    RLU_READER_LOCK(self); /* a part of it */
    EXPECT(NULL, RLU_DEREF(self, NULL));
    EXPECT(object, RLU_DEREF(self, object));
    EXPECT(1, RLU_TRY_LOCK(self, &copy));
    EXPECT(1, RLU_TRY_LOCK(self, &copy));
    EXPECT(1, copy != object);
    EXPECT(copy, RLU_DEREF(self, object));
    EXPECT(copy, RLU_DEREF(self, copy));
    EXPECT(1, RLU_IS_SAME_PTRS(copy, object));
    EXPECT(0, RLU_IS_SAME_PTRS(copy, NULL));
    EXPECT(1, RLU_IS_SAME_PTRS(NULL, NULL));
    {
        const struct pair *seen = object;
        volatile struct pair *wild = object;
        EXPECT(copy, RLU_DEREF(self, seen));
        EXPECT(copy, RLU_DEREF(self, 1 ? wild : NULL));
        EXPECT(1, RLU_IS_SAME_PTRS(seen, wild));
    }
    RLU_ASSIGN_PTR(self, &place, copy);
    EXPECT(object, place);
    RLU_ASSIGN_PTR(self, &place, NULL);
    EXPECT(NULL, place);
    fresh = (struct pair *)RLU_ALLOC(sizeof *fresh); /* of no session */
    EXPECT(MANYCORE_BUSY, RLU_FINISH());
    EXPECT(MANYCORE_BUSY, RLU_THREAD_FINISH(self));
    EXPECT(MANYCORE_BUSY, RLU_THREAD_FREE(self));
    EXPECT(MANYCORE_BUSY, manycore_rlu_flush(self));
    run(session_of_another, &shared);
    copy->one = 2;
    RLU_READER_UNLOCK(self);
    RLU_READER_UNLOCK(self);

    RLU_READER_LOCK(self);
    EXPECT(2, ((struct pair *)RLU_DEREF(self, object))->one);
    EXPECT(1, RLU_TRY_LOCK(self, &fresh));
    RLU_ABORT(self);

    /* A thread that ends with an object locked has aborted its session. */
    run(end_in_session, &shared);
    RLU_READER_LOCK(self);
    copy = object;
    EXPECT(1, RLU_TRY_LOCK(self, &copy));
    EXPECT(2, copy->one);
    EXPECT(1, RLU_FREE(self, copy));
    EXPECT(0, RLU_TRY_LOCK(self, &object)); /* freed by this session */
    RLU_READER_UNLOCK(self);

    EXPECT(MANYCORE_OK, manycore_rlu_flush(self));
    fresh = (struct pair *)RLU_ALLOC(sizeof *fresh);
    EXPECT(1, RLU_FREE(NULL, fresh));
    EXPECT(1, RLU_FREE(NULL, NULL));
    EXPECT(1, RLU_FREE(self, RLU_ALLOC(100)));
    EXPECT(MANYCORE_OK, RLU_THREAD_FINISH(other));
    EXPECT(MANYCORE_OK, RLU_THREAD_FREE(other));
}

/* ---- reports of who is in the way ---- */

static void note(const manycore_stall_t *stall, void *context)
{
    EXPECT(1, stall->bytes > 0);
    EXPECT(1, stall->thread > 0);
    __atomic_fetch_add((int *)context, 1, __ATOMIC_RELEASE);
}

static void *fill_log(void *data)
{
    struct shared *shared = (struct shared *)data;
    int i;
    for (i = 0; i < 3000; i++) {
        struct pair *object = shared->object;
        RLU_READER_LOCK(shared->self);
        if (RLU_TRY_LOCK(shared->self, &object)) {
            object->one++;
            RLU_READER_UNLOCK(shared->self);
        } else {
            RLU_ABORT(shared->self);
            i--;
        }
    }
    return NULL;
}

static void rlu_report(void)
{
    static int told;
    manycore_rlu_config_t config;
    rlu_thread_data_t *self, *other;
    struct shared shared;
    pthread_t thread;

    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.segment_bytes = 4096;
    config.segments = 2;
    config.segments_max = 4;
    config.patience_ms = 4;
    config.report = note;
    config.context = &told;
    EXPECT(MANYCORE_OK, manycore_rlu_init(&config));
    self = RLU_THREAD_ALLOC();
    other = RLU_THREAD_ALLOC();
    RLU_THREAD_INIT(self);
    RLU_THREAD_INIT(other);
    shared.self = other;
    shared.object = (struct pair *)RLU_ALLOC(sizeof(struct pair));

    /* sees the object as it is now, whatever the other thread does, which has to wait */
    RLU_READER_LOCK(self);
    EXPECT(0, ((struct pair *)RLU_DEREF(self, shared.object))->one);
    EXPECT(0, pthread_create(&thread, NULL, fill_log, &shared));
    while (__atomic_load_n(&told, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    EXPECT(0, ((struct pair *)RLU_DEREF(self, shared.object))->one);
    RLU_READER_UNLOCK(self);
    EXPECT(0, pthread_join(thread, NULL));
    RLU_THREAD_FREE(other);
    RLU_THREAD_FREE(self);
    EXPECT(3000, shared.object->one); /* the last thread has left */
    EXPECT(MANYCORE_OK, RLU_FINISH());
}

/* ---- locks ---- */

static void *locked_by_another(void *data)
{
    manycore_mutex_t *mutex = (manycore_mutex_t *)data;
    EXPECT(MANYCORE_BUSY, manycore_mutex_trylock(mutex));
    EXPECT(MANYCORE_TIMED_OUT, manycore_mutex_timedlock(mutex, 1000000));
    EXPECT(MANYCORE_NOT_OWNER, manycore_mutex_unlock(mutex));
    EXPECT(MANYCORE_BUSY, manycore_mutex_destroy(mutex));
    return NULL;
}

static void mutexes(void)
{
    manycore_mutex_t mutex;
    const char *name = NULL;
    size_t i = 0;
    EXPECT(MANYCORE_NULL, manycore_mutex_lock(NULL));
    EXPECT(MANYCORE_NULL, manycore_mutex_init(NULL, NULL));
    EXPECT(MANYCORE_UNKNOWN_LOCK, manycore_mutex_init(&mutex, "phase-rw"));
    do {
        EXPECT(MANYCORE_OK, manycore_mutex_init(&mutex, name));
        EXPECT(MANYCORE_NOT_OWNER, manycore_mutex_unlock(&mutex));
        EXPECT(MANYCORE_OK, manycore_mutex_lock(&mutex));
        EXPECT(MANYCORE_DEADLOCK, manycore_mutex_lock(&mutex));
        EXPECT(MANYCORE_DEADLOCK, manycore_mutex_trylock(&mutex));
        EXPECT(MANYCORE_DEADLOCK, manycore_mutex_timedlock(&mutex, 1));
        run(locked_by_another, &mutex);
        EXPECT(MANYCORE_OK, manycore_mutex_unlock(&mutex));
        EXPECT(MANYCORE_OK, manycore_mutex_timedlock(&mutex, 1));
        EXPECT(MANYCORE_OK, manycore_mutex_unlock(&mutex));
        EXPECT(MANYCORE_OK, manycore_mutex_trylock(&mutex));
        EXPECT(MANYCORE_OK, manycore_mutex_unlock(&mutex));
        EXPECT(MANYCORE_OK, manycore_mutex_destroy(&mutex));
        EXPECT(MANYCORE_INVALID, manycore_mutex_lock(&mutex));
        EXPECT(MANYCORE_INVALID, manycore_mutex_destroy(&mutex));
        name = manycore_lock_name(i++);
    } while (name != NULL);
    EXPECT(NULL, manycore_lock_name((size_t)-1));
}

static void *read_locked_by_another(void *data)
{
    manycore_rwlock_t *lock = (manycore_rwlock_t *)data;
    EXPECT(MANYCORE_BUSY, manycore_rwlock_trywrlock(lock));
    EXPECT(MANYCORE_OK, manycore_rwlock_tryrdlock(lock));
    EXPECT(MANYCORE_OK, manycore_rwlock_rdunlock(lock));
    EXPECT(MANYCORE_NOT_OWNER, manycore_rwlock_wrunlock(lock));
    EXPECT(MANYCORE_BUSY, manycore_rwlock_destroy(lock));
    return NULL;
}

static void *write_locked_by_another(void *data)
{
    manycore_rwlock_t *lock = (manycore_rwlock_t *)data;
    EXPECT(MANYCORE_BUSY, manycore_rwlock_trywrlock(lock));
    EXPECT(MANYCORE_BUSY, manycore_rwlock_tryrdlock(lock));
    EXPECT(MANYCORE_NOT_OWNER, manycore_rwlock_wrunlock(lock));
    return NULL;
}

static void rwlocks(void)
{
    static const char *const names[] = {NULL, "phase-rw", "per-cpu-rw", "bravo"};
    manycore_rwlock_t lock;
    size_t i;
    EXPECT(MANYCORE_NULL, manycore_rwlock_rdlock(NULL));
    EXPECT(MANYCORE_NULL, manycore_rwlock_init(NULL, NULL));
    EXPECT(MANYCORE_UNKNOWN_LOCK, manycore_rwlock_init(&lock, "adaptive"));
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        EXPECT(MANYCORE_OK, manycore_rwlock_init(&lock, names[i]));
        EXPECT(MANYCORE_OK, manycore_rwlock_rdlock(&lock));
        run(read_locked_by_another, &lock);
        EXPECT(MANYCORE_OK, manycore_rwlock_rdunlock(&lock));
        EXPECT(MANYCORE_OK, manycore_rwlock_wrlock(&lock));
        EXPECT(MANYCORE_DEADLOCK, manycore_rwlock_wrlock(&lock));
        EXPECT(MANYCORE_DEADLOCK, manycore_rwlock_rdlock(&lock));
        EXPECT(MANYCORE_DEADLOCK, manycore_rwlock_tryrdlock(&lock));
        run(write_locked_by_another, &lock);
        EXPECT(MANYCORE_OK, manycore_rwlock_wrunlock(&lock));
        EXPECT(MANYCORE_OK, manycore_rwlock_destroy(&lock));
        EXPECT(MANYCORE_INVALID, manycore_rwlock_wrlock(&lock));
    }
}

/* ---- RCU ---- */

static int destroyed;

static void destroy(manycore_rcu_head_t *head)
{
    (void)head;
    destroyed++;
}

/* A part of an object, and who is told of its end. */
struct told {
    manycore_rcu_head_t head;
    manycore_rcu_thread_t *self;
};

/* A destructor may read, and put another off. */
static void destroy_later(manycore_rcu_head_t *head)
{
    manycore_rcu_thread_t *self = ((struct told *)(void *)head)->self;
    manycore_rcu_read_lock(self);
    EXPECT(MANYCORE_DEADLOCK, manycore_rcu_synchronize(self));
    EXPECT(MANYCORE_OK, manycore_rcu_call(self, head, 1, destroy));
    manycore_rcu_read_unlock(self);
}

static void *end_in_section(void *data)
{
    manycore_rcu_thread_t *self;
    EXPECT(MANYCORE_OK, manycore_rcu_register((manycore_rcu_t *)data, &self));
    manycore_rcu_read_lock(self);
    manycore_rcu_read_lock(self);
    return NULL;
}

static void *thread_of_another(void *data)
{
    manycore_rcu_thread_t *self = (manycore_rcu_thread_t *)data;
    manycore_rcu_head_t head;
    EXPECT(MANYCORE_NOT_OWNER, manycore_rcu_unregister(self));
    EXPECT(MANYCORE_NOT_OWNER, manycore_rcu_synchronize(self));
    EXPECT(MANYCORE_NOT_OWNER, manycore_rcu_call(self, &head, 1, destroy));
    return NULL;
}

static void rcu(void)
{
    manycore_rcu_config_t config;
    manycore_rcu_thread_t *self, *online;
    manycore_rcu_head_t head;
    manycore_rcu_t *rcu;
    struct told told;
    int i;

    memset(&config, 0, sizeof config);
    EXPECT(MANYCORE_INVALID, manycore_rcu_create(&config, &rcu));
    config.size = sizeof config;
    config.fences = 1;
    config.limit_bytes = 1 << 20;
    EXPECT(MANYCORE_NULL, manycore_rcu_create(&config, NULL));
    EXPECT(MANYCORE_OK, manycore_rcu_create(&config, &rcu));
    EXPECT(MANYCORE_NULL, manycore_rcu_register(NULL, &self));
    EXPECT(MANYCORE_NULL, manycore_rcu_register(rcu, NULL));
    EXPECT(MANYCORE_NULL, manycore_rcu_unregister(NULL));
    EXPECT(MANYCORE_NULL, manycore_rcu_destroy(NULL));
    EXPECT(MANYCORE_OK, manycore_rcu_register(rcu, &self));
    run(thread_of_another, self);
    run(end_in_section, rcu);
    EXPECT(MANYCORE_BUSY, manycore_rcu_destroy(rcu));
    EXPECT(MANYCORE_NULL, manycore_rcu_call(self, NULL, 1, destroy));
    EXPECT(MANYCORE_NULL, manycore_rcu_call(self, &head, 1, NULL));
    manycore_rcu_read_lock(self);
    EXPECT(MANYCORE_OK, manycore_rcu_call(self, &head, 100, destroy));
    /* With the bag in which it waits. */
    EXPECT(100 + 1024, manycore_rcu_held_bytes(rcu));
    EXPECT(MANYCORE_DEADLOCK, manycore_rcu_synchronize(self));
    EXPECT(MANYCORE_BUSY, manycore_rcu_unregister(self));
    manycore_rcu_read_unlock(self);
    EXPECT(MANYCORE_OK, manycore_rcu_synchronize(self));
    EXPECT(1, destroyed);
    EXPECT(0, manycore_rcu_held_bytes(rcu));
    EXPECT(MANYCORE_INVALID, manycore_rcu_quiescent(self));
    EXPECT(MANYCORE_INVALID, manycore_rcu_offline(self));

    EXPECT(MANYCORE_OK, manycore_rcu_register_qsbr(rcu, &online));
    EXPECT(MANYCORE_INVALID, manycore_rcu_online(online));
    manycore_rcu_read_lock(online);
    EXPECT(MANYCORE_BUSY, manycore_rcu_quiescent(online));
    EXPECT(MANYCORE_BUSY, manycore_rcu_offline(online));
    manycore_rcu_read_unlock(online);
    EXPECT(MANYCORE_OK, manycore_rcu_quiescent(online));
    EXPECT(MANYCORE_OK, manycore_rcu_offline(online));
    EXPECT(MANYCORE_NO_SESSION, manycore_rcu_call(online, &head, 1, destroy));
    EXPECT(MANYCORE_OK, manycore_rcu_synchronize(self));
    EXPECT(MANYCORE_OK, manycore_rcu_synchronize(online));
    EXPECT(MANYCORE_OK, manycore_rcu_online(online));
    EXPECT(MANYCORE_OK, manycore_rcu_synchronize(online));
    EXPECT(MANYCORE_OK, manycore_rcu_call(online, &head, 1, destroy));
    EXPECT(MANYCORE_OK, manycore_rcu_unregister(online));

    told.self = self;
    EXPECT(MANYCORE_OK, manycore_rcu_call(self, &told.head, 1, destroy_later));
    for (i = 0; i < 3; i++)
        EXPECT(MANYCORE_OK, manycore_rcu_synchronize(self));
    EXPECT(3, destroyed);
    EXPECT(MANYCORE_OK, manycore_rcu_unregister(self));
    EXPECT(MANYCORE_OK, manycore_rcu_destroy(rcu));
    EXPECT(3, destroyed);
}

/* ---- LDU ---- */

static void ldu(void)
{
    static const manycore_ldu_target_t nothing = {NULL, NULL};
    manycore_ldu_node_t node = MANYCORE_LDU_NODE_INIT;
    manycore_ldu_table_t *table;
    manycore_ldu_t *log;
    EXPECT(MANYCORE_INVALID, manycore_ldu_create(7, &log));
    EXPECT(MANYCORE_NULL, manycore_ldu_create(MANYCORE_LDU_GLOBAL, NULL));
    EXPECT(MANYCORE_NULL, manycore_ldu_create_in(NULL, &log));
    EXPECT(MANYCORE_INVALID, manycore_ldu_table_create(0, &table));
    EXPECT(MANYCORE_INVALID, manycore_ldu_table_create((size_t)-1, &table));
    EXPECT(MANYCORE_NULL, manycore_ldu_table_destroy(NULL));
    EXPECT(MANYCORE_NULL, manycore_ldu_destroy(NULL));
    EXPECT(MANYCORE_OK, manycore_ldu_create(MANYCORE_LDU_PER_CORE, &log));
    EXPECT(MANYCORE_NULL, manycore_ldu_insert(log, NULL));
    EXPECT(MANYCORE_NULL, manycore_ldu_remove(NULL, &node));
    EXPECT(MANYCORE_NULL, manycore_ldu_retire(log, NULL));
    EXPECT(MANYCORE_NULL, manycore_ldu_drain(log, NULL, NULL, NULL));
    EXPECT(MANYCORE_NULL, manycore_ldu_drain(log, &nothing, NULL, NULL));
    EXPECT(MANYCORE_OK, manycore_ldu_destroy(log));
}

int main(void)
{
    rlu_thread_data_t *self = RLU_THREAD_ALLOC();
    statuses();
    rlu_before_init(self);
    rlu_early();
    rlu_config();
    rlu_report();
    rlu_registration(self);
    rlu_sessions(self);
    EXPECT(MANYCORE_OK, RLU_THREAD_FINISH(self));
    EXPECT(MANYCORE_OK, RLU_FINISH());
    EXPECT(MANYCORE_OK, RLU_THREAD_FREE(self));
    EXPECT(1, RLU_THREAD_ALLOC() != NULL);
    EXPECT(MANYCORE_OK, RLU_THREAD_FREE());
    EXPECT(MANYCORE_NULL, RLU_THREAD_FREE());
    mutexes();
    rwlocks();
    rcu();
    ldu();
    return failed;
}
