/*
 * Locks, chosen by name: every algorithm that `manycore locks` lists, behind one type.
 *
 *     static manycore_mutex_t lock = MANYCORE_MUTEX_INIT;     the usual one, `adaptive`
 *     manycore_mutex_lock(&lock);
 *     manycore_mutex_unlock(&lock);
 *
 *     manycore_mutex_t queue;
 *     manycore_mutex_init(&queue, "mcs");                     or another
 *
 * A lock stays where it is from its first use on. In a child of fork, the locks that the forking
 * thread holds are held, and those of other threads must not be used.
 */
#ifndef MANYCORE_LOCK_H
#define MANYCORE_LOCK_H

#include <stddef.h>
#include <stdint.h>

#include <manycore/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of a lock, from 0 on; null after the last. */
const char *manycore_lock_name(size_t number);

/* A mutex. All zero: the lock `adaptive`, held by no thread. */
typedef struct manycore_mutex {
    uint32_t kind, owner;
    uint64_t lock[2];
} manycore_mutex_t;

#define MANYCORE_MUTEX_INIT {0, 0, {0, 0}}

/*
 * Makes a mutex of the lock with that name, or null for the usual one; MANYCORE_UNKNOWN_LOCK. It
 * has to be destroyed only if the lock is one of the library-only ones (`anderson`, `hmcs`,
 * `c-bo-mcs`), which do not fit, and are allocated.
 */
manycore_status_t manycore_mutex_init(manycore_mutex_t *mutex, const char *name);

/* MANYCORE_BUSY if it is held. Later uses return MANYCORE_INVALID. */
manycore_status_t manycore_mutex_destroy(manycore_mutex_t *mutex);

/* MANYCORE_DEADLOCK if the calling thread holds it. */
manycore_status_t manycore_mutex_lock(manycore_mutex_t *mutex);

/* MANYCORE_BUSY if another thread holds it, MANYCORE_DEADLOCK as above. */
manycore_status_t manycore_mutex_trylock(manycore_mutex_t *mutex);

/* For this many nanoseconds, then MANYCORE_TIMED_OUT; MANYCORE_DEADLOCK as above. */
manycore_status_t manycore_mutex_timedlock(manycore_mutex_t *mutex, uint64_t nanoseconds);

/* MANYCORE_NOT_OWNER if the calling thread does not hold it. */
manycore_status_t manycore_mutex_unlock(manycore_mutex_t *mutex);

/*
 * A reader-writer lock. All zero: `adaptive-rw`, held by no thread. A thread that reads must not begin
 * to read again, nor to write: it may wait for ever. A thread that gives back what it has not acquired
 * for reading breaks the lock.
 */
typedef struct manycore_rwlock {
    uint32_t kind, writer;
    uint64_t lock[3];
} manycore_rwlock_t;

#define MANYCORE_RWLOCK_INIT {0, 0, {0, 0, 0}}

/* `adaptive-rw`, `phase-rw`, `per-cpu-rw`, `bravo`, or null for the first. The last two are
   allocated, and have to be destroyed. */
manycore_status_t manycore_rwlock_init(manycore_rwlock_t *lock, const char *name);
/* MANYCORE_BUSY if it is held. */
manycore_status_t manycore_rwlock_destroy(manycore_rwlock_t *lock);
/* For reading. MANYCORE_DEADLOCK if the calling thread writes. */
manycore_status_t manycore_rwlock_rdlock(manycore_rwlock_t *lock);
/* MANYCORE_BUSY if that would take waiting. */
manycore_status_t manycore_rwlock_tryrdlock(manycore_rwlock_t *lock);
manycore_status_t manycore_rwlock_rdunlock(manycore_rwlock_t *lock);
/* For writing. MANYCORE_DEADLOCK if the calling thread writes already. */
manycore_status_t manycore_rwlock_wrlock(manycore_rwlock_t *lock);
/* MANYCORE_BUSY if that would take waiting. */
manycore_status_t manycore_rwlock_trywrlock(manycore_rwlock_t *lock);
/* MANYCORE_NOT_OWNER if the calling thread does not write. */
manycore_status_t manycore_rwlock_wrunlock(manycore_rwlock_t *lock);

#ifdef MANYCORE_TSAN
/* What the lock orders, told to ThreadSanitizer. It sees readers as ordered among each other, which
   they are not. */
#define MANYCORE_TSAN_ACQUIRE(name, type)                          \
    static inline manycore_status_t name##_tsan(type *lock)        \
    {                                                              \
        manycore_status_t status = name(lock);                     \
        if (status == MANYCORE_OK)                                 \
            __tsan_acquire(lock);                                  \
        return status;                                             \
    }
#define MANYCORE_TSAN_RELEASE(name, type)                          \
    static inline manycore_status_t name##_tsan(type *lock)        \
    {                                                              \
        __tsan_release(lock);                                      \
        return name(lock);                                         \
    }
MANYCORE_TSAN_ACQUIRE(manycore_mutex_lock, manycore_mutex_t)
MANYCORE_TSAN_ACQUIRE(manycore_mutex_trylock, manycore_mutex_t)
MANYCORE_TSAN_RELEASE(manycore_mutex_unlock, manycore_mutex_t)
MANYCORE_TSAN_ACQUIRE(manycore_rwlock_rdlock, manycore_rwlock_t)
MANYCORE_TSAN_ACQUIRE(manycore_rwlock_tryrdlock, manycore_rwlock_t)
MANYCORE_TSAN_RELEASE(manycore_rwlock_rdunlock, manycore_rwlock_t)
MANYCORE_TSAN_ACQUIRE(manycore_rwlock_wrlock, manycore_rwlock_t)
MANYCORE_TSAN_ACQUIRE(manycore_rwlock_trywrlock, manycore_rwlock_t)
MANYCORE_TSAN_RELEASE(manycore_rwlock_wrunlock, manycore_rwlock_t)
static inline manycore_status_t manycore_mutex_timedlock_tsan(manycore_mutex_t *mutex,
                                                              uint64_t nanoseconds)
{
    manycore_status_t status = manycore_mutex_timedlock(mutex, nanoseconds);
    if (status == MANYCORE_OK)
        __tsan_acquire(mutex);
    return status;
}
#define manycore_mutex_lock manycore_mutex_lock_tsan
#define manycore_mutex_trylock manycore_mutex_trylock_tsan
#define manycore_mutex_timedlock manycore_mutex_timedlock_tsan
#define manycore_mutex_unlock manycore_mutex_unlock_tsan
#define manycore_rwlock_rdlock manycore_rwlock_rdlock_tsan
#define manycore_rwlock_tryrdlock manycore_rwlock_tryrdlock_tsan
#define manycore_rwlock_rdunlock manycore_rwlock_rdunlock_tsan
#define manycore_rwlock_wrlock manycore_rwlock_wrlock_tsan
#define manycore_rwlock_trywrlock manycore_rwlock_trywrlock_tsan
#define manycore_rwlock_wrunlock manycore_rwlock_wrunlock_tsan
#endif

#ifdef __cplusplus
}
#endif

#endif
