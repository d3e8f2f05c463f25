/*
 * Read-log-update: objects with versions. A thread that reads sees one moment and never waits; a
 * thread that writes several objects has them change for everybody at once.
 *
 * The macros are those of the papers on RLU (Matveev, Shavit, Felber & Marlier, SOSP 2015) and
 * MV-RLU (Kim, Mathew, Kashyap, Ramanathan & Min, ASPLOS 2019), with the arguments that programs
 * for either give them; what is behind them is MV-RLU.
 *
 *     RLU_INIT();                                         once, before all else
 *
 *     rlu_thread_data_t *self = RLU_THREAD_ALLOC();       for each thread
 *     RLU_THREAD_INIT(self);
 *
 *     restart:
 *     RLU_READER_LOCK(self);                              a session: it reads as of this moment
 *     node_t *node = RLU_DEREF(self, list->first);
 *     if (!RLU_TRY_LOCK(self, &node)) {                   node is now a copy of this session
 *         RLU_ABORT(self);                                drops what it changed; waits a little
 *         goto restart;
 *     }
 *     node->value = 7;
 *     RLU_ASSIGN_PTR(self, &node->next, other);           objects lead to objects, not to copies
 *     RLU_READER_UNLOCK(self);                            others see all of it, at once
 *
 *     RLU_THREAD_FINISH(self);
 *     RLU_THREAD_FREE(self);
 *     RLU_FINISH();
 *
 * A thread that ends with a session open has aborted it. A child of fork has no part in its
 * parent's objects; it may call RLU_INIT itself. RLU_READER_LOCK and the macros after it end the
 * process, with a line that says why, if they are called with a thread that is not registered,
 * without a session where there has to be one, or with null where there has to be an object.
 */
#ifndef MANYCORE_RLU_H
#define MANYCORE_RLU_H

#include <stddef.h>
#include <stdint.h>

#include <manycore/stall.h>
#include <manycore/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A thread's data. Allocate it with RLU_THREAD_ALLOC, or have it where you like, and keep it there
   until RLU_THREAD_FINISH. */
typedef struct rlu_thread_data {
    void *session;        /* the library's */
    /* may be set while no other thread is in a session: then each commit brings the objects up
       to date */
    int is_no_quiescence;
    int reserved;
    void *more[2];
} rlu_thread_data_t;

/* For RLU_INIT of RLU; it has no other type here. */
#define RLU_TYPE_FINE_GRAINED 1

/* What orders commits. */
typedef enum manycore_clock {
    /* the CPUs' counters; a session sees every commit that returned before it began */
    MANYCORE_CLOCK_ORDO = 0,
    /* the same; a session on another CPU that begins just after a commit may miss it */
    MANYCORE_CLOCK_ORDO_RELAXED = 1,
    MANYCORE_CLOCK_COUNTER = 2       /* a counter that all share */
} manycore_clock_t;

/* Limits. Set all to zero, `size` to sizeof(manycore_rlu_config_t), and then what is to differ:
   zero is the usual value. */
typedef struct manycore_rlu_config {
    size_t size;
    int clock;            /* manycore_clock_t */
    /* of waiting for room in a log, after which `report` is called. 100 */
    uint32_t patience_ms;
    /* of a log; a multiple of 64, from 1 KiB on. An object has to fit. 16 KiB */
    size_t segment_bytes;
    size_t segments;      /* of a thread's log when it registers, 2 or more. 8 */
    size_t segments_max;  /* to which it may grow. 1024 */
    manycore_report_t report;
    void *context;
} manycore_rlu_config_t;

/* What was done so far, by all threads. */
typedef struct manycore_rlu_stats {
    uint64_t commits;
    uint64_t aborts;
    uint64_t versions;     /* that were committed */
    uint64_t hops;         /* versions that were looked at to read objects */
    uint64_t periods;      /* grace periods that were looked for */
    uint64_t forced;       /* times that a thread had to wait for room in its log: should be rare */
    uint64_t written_back; /* versions, to their objects */
    uint64_t freed;        /* objects */
    uint64_t object_bytes; /* memory for objects, in use or free */
} manycore_rlu_stats_t;

/*
 * Begins: threads may register. Null for the usual configuration. MANYCORE_ALREADY, also for a
 * configuration if an object was made before; MANYCORE_INVALID. Takes some milliseconds, to measure
 * by how much the CPUs' clocks differ.
 */
manycore_status_t manycore_rlu_init(const manycore_rlu_config_t *config);

/*
 * Ends: frees all objects. MANYCORE_BUSY if a session is open, and then nothing has changed. No
 * other thread uses RLU meanwhile, and none does later before the next manycore_rlu_init, also not
 * with the data of threads that were registered.
 */
manycore_status_t manycore_rlu_finish(void);

/* What was done so far; `size` is sizeof(manycore_rlu_stats_t). */
manycore_status_t manycore_rlu_stats(manycore_rlu_stats_t *out, size_t size);

/* The same, on stdout. */
void manycore_rlu_print_stats(void);

/* A thread's data, all zero. Needs no RLU_INIT before. */
rlu_thread_data_t *manycore_rlu_thread_alloc(void);

/* Frees that; null: what the calling thread has allocated last. Does manycore_rlu_thread_finish
   before, if that was not done. */
manycore_status_t manycore_rlu_thread_free(rlu_thread_data_t *self);

/*
 * Lets a thread take part. Any thread may call it, and pass `self` on: one thread uses it at a
 * time. MANYCORE_ALREADY if that was done with this address and not ended, also by a thread that is
 * gone: it can be used all the same.
 */
manycore_status_t manycore_rlu_thread_init(rlu_thread_data_t *self);

/*
 * The opposite, by any thread. MANYCORE_BUSY if its session is open. When the last thread has left,
 * the objects themselves are up to date: a program may look at them without RLU_DEREF.
 */
manycore_status_t manycore_rlu_thread_finish(rlu_thread_data_t *self);

/* Begins a session, or in one a part of it: that ends with an RLU_READER_UNLOCK of its own. */
void manycore_rlu_reader_lock(rlu_thread_data_t *self);

/*
 * Ends the session (or its part): 1, and what was written is committed. Objects that the session
 * has read are not to be used any more. 0 if the session met a conflict before, and was not
 * aborted: it cannot commit, and so this has aborted it, as manycore_rlu_abort does.
 */
int manycore_rlu_reader_unlock(rlu_thread_data_t *self);

/* Ends the session with all its parts as if it had not been, and waits a little, the longer the
   more often that happens. */
void manycore_rlu_abort(rlu_thread_data_t *self);

/*
 * Locks an object, all of it whatever the pointer's type: 1, and then *object is a copy to be
 * changed. 0 if another thread has locked it, or has changed it since the session began, or there
 * is no room: the session can only be aborted.
 */
int manycore_rlu_try_lock(rlu_thread_data_t *self, void **object);

/*
 * Locks an object that the session has read and is not going to change: 1, or 0. If all sessions do
 * that with what they depend on, it is as if they had run one after the other; otherwise two
 * sessions that each read what the other writes can both commit.
 */
int manycore_rlu_try_lock_const(rlu_thread_data_t *self, void *object);

/*
 * A new object, zeroed, aligned to 16 bytes. It is there until it is freed, whatever becomes of a
 * session. Null if it is larger than a segment of a log allows: 8,176 bytes by default, 32,752 with
 * segments of 64 KiB. In a session it is fast; outside, all threads take turns. Before
 * manycore_rlu_init it begins with the usual configuration.
 */
void *manycore_rlu_alloc(size_t size);

/*
 * Frees an object: in a session with its commit, outside at once; in either case, sessions that may
 * see it keep it. 1, or 0 if the session could not lock it, which cannot be if it has done so
 * before. `self` may be null outside sessions.
 */
int manycore_rlu_free(rlu_thread_data_t *self, void *object);

/* What the session sees of an object, or has written itself; null for null. The macro is faster. */
void *manycore_rlu_deref(rlu_thread_data_t *self, void *object);

/* *place becomes a pointer to the object of which `object` is a copy, or itself. */
void manycore_rlu_assign_ptr(void **place, void *object);

/* 1 if both are of one object. Pointers to an object and to copies of it differ. */
int manycore_rlu_is_same(void *one, void *other);

/* Brings the objects themselves up to date, as far as sessions of other threads allow.
   MANYCORE_BUSY in a session. */
manycore_status_t manycore_rlu_flush(rlu_thread_data_t *self);

/* RLU_DEREF: an object without versions is what every session sees; the word 16 bytes before it
   says whether it has any. */
static inline void *manycore_rlu_look(rlu_thread_data_t *self, void *object)
{
    if (object != NULL && __atomic_load_n((uintptr_t *)object - 2, __ATOMIC_ACQUIRE) == 0)
        return object;
    return manycore_rlu_deref(self, object);
}

#ifdef MANYCORE_TSAN
/* All sessions are ordered as if they ended and began under one lock: see docs/src/capi.md. */
static inline void manycore_rlu_tsan_lock(rlu_thread_data_t *self)
{
    manycore_rlu_reader_lock(self);
    __tsan_acquire((void *)(uintptr_t)&manycore_rlu_init);
}

static inline int manycore_rlu_tsan_unlock(rlu_thread_data_t *self)
{
    __tsan_release((void *)(uintptr_t)&manycore_rlu_init);
    return manycore_rlu_reader_unlock(self);
}

static inline void manycore_rlu_tsan_abort(rlu_thread_data_t *self)
{
    __tsan_release((void *)(uintptr_t)&manycore_rlu_init);
    manycore_rlu_abort(self);
}

static inline int manycore_rlu_tsan_try_lock(rlu_thread_data_t *self, void **object)
{
    int locked = manycore_rlu_try_lock(self, object);
    __tsan_acquire((void *)(uintptr_t)&manycore_rlu_init);
    return locked;
}

static inline void *manycore_rlu_tsan_alloc(size_t size)
{
    void *object = manycore_rlu_alloc(size);
    __tsan_acquire((void *)(uintptr_t)&manycore_rlu_init);
    return object;
}

#define RLU_READER_LOCK(self) manycore_rlu_tsan_lock(self)
#define RLU_READER_UNLOCK(self) manycore_rlu_tsan_unlock(self)
#define RLU_ABORT(self) manycore_rlu_tsan_abort(self)
#define RLU_TRY_LOCK(self, p_p_obj) manycore_rlu_tsan_try_lock((self), (void **)(p_p_obj))
#define RLU_ALLOC(size) manycore_rlu_tsan_alloc(size)
#else
#define RLU_READER_LOCK(self) manycore_rlu_reader_lock(self)
#define RLU_READER_UNLOCK(self) manycore_rlu_reader_unlock(self)
#define RLU_ABORT(self) manycore_rlu_abort(self)
#define RLU_TRY_LOCK(self, p_p_obj) manycore_rlu_try_lock((self), (void **)(p_p_obj))
#define RLU_ALLOC(size) manycore_rlu_alloc(size)
#endif

#define RLU_FINISH() manycore_rlu_finish()
#define RLU_PRINT_STATS() manycore_rlu_print_stats()
#define RLU_THREAD_ALLOC() manycore_rlu_thread_alloc()
#define RLU_THREAD_INIT(self) manycore_rlu_thread_init(self)
#define RLU_THREAD_FINISH(self) manycore_rlu_thread_finish(self)
/* Objects may be const or volatile, as with the original's casts. */
#define RLU_TRY_LOCK_CONST(self, obj) manycore_rlu_try_lock_const((self), (void *)(obj))
#define RLU_FREE(self, p_obj) manycore_rlu_free((self), (void *)(p_obj))
#define RLU_DEREF(self, p_obj) manycore_rlu_look((self), (void *)(p_obj))
#define RLU_ASSIGN_PTR(self, p_ptr, p_obj) \
    ((void)(self), manycore_rlu_assign_ptr((void **)(p_ptr), (void *)(p_obj)))
#define RLU_IS_SAME_PTRS(p_obj_1, p_obj_2) \
    manycore_rlu_is_same((void *)(p_obj_1), (void *)(p_obj_2))

#ifdef __cplusplus
}
#endif

/*
 * Programs give RLU_INIT nothing, the number of a CPU (MV-RLU), or a type and a number of write
 * sets (RLU): all of it is about their implementations, and is looked at and left. RLU_THREAD_FREE
 * gets the thread's data, or nothing.
 */
#ifdef __cplusplus
inline manycore_status_t manycore_rlu_init_as_told(long = 0, long = 0)
{
    return manycore_rlu_init(nullptr);
}
inline manycore_status_t manycore_rlu_thread_free_own(rlu_thread_data_t *self = nullptr)
{
    return manycore_rlu_thread_free(self);
}
#define RLU_INIT(...) manycore_rlu_init_as_told(__VA_ARGS__)
#define RLU_THREAD_FREE(...) \
    manycore_rlu_thread_free_own(__VA_ARGS__)
#else
#define RLU_INIT(...) ((void)sizeof((long[3]){0, __VA_ARGS__}), manycore_rlu_init(NULL))
#define RLU_THREAD_FREE(...) manycore_rlu_thread_free(((rlu_thread_data_t *[2]){NULL, __VA_ARGS__})[1])
#endif

#endif
