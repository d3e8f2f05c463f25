/*
 * RCU, grace periods: readers that never wait, and memory that is freed when none of them can have
 * a pointer to it any more.
 *
 *     manycore_rcu_t *rcu;
 *     manycore_rcu_create(NULL, &rcu);
 *
 *     manycore_rcu_thread_t *self;                        for each thread, by itself
 *     manycore_rcu_register(rcu, &self);
 *
 *     manycore_rcu_read_lock(self);                       a section
 *     struct config *now = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
 *     ...                                                 now is there until the section's end
 *     manycore_rcu_read_unlock(self);
 *
 *     old = __atomic_exchange_n(&current, next, __ATOMIC_ACQ_REL);
 *     manycore_rcu_call(self, &old->head, sizeof *old, destroy);      after a grace period
 *
 * A registration is its thread's own, and ends with the thread. A child of fork must not use its
 * parent's domains; it may make others. manycore_rcu_read_lock and manycore_rcu_read_unlock end the
 * process, with a line that says why, if they are called with null, by a thread that is offline, or
 * without a section.
 */
#ifndef MANYCORE_RCU_H
#define MANYCORE_RCU_H

#include <stddef.h>
#include <stdint.h>

#include <manycore/stall.h>
#include <manycore/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct manycore_rcu manycore_rcu_t;
typedef struct manycore_rcu_thread manycore_rcu_thread_t;

/* A part of an object that is to be destroyed. No other thread writes to it from manycore_rcu_call
   on. */
typedef struct manycore_rcu_head {
    void (*destroy)(struct manycore_rcu_head *head);
    void *extra;
} manycore_rcu_head_t;

/* Set all to zero, `size` to sizeof(manycore_rcu_config_t), and then what is to differ: zero is the
   usual value. */
typedef struct manycore_rcu_config {
    size_t size;
    /* of what waits to be destroyed; near it, a thread that adds to it waits. 64 MiB */
    size_t limit_bytes;
    /* after which a reader is reported that others wait for. 1000 */
    uint64_t patience_ms;
    /* not 0: readers pass a fence, also where the kernel can do without (membarrier) */
    int fences;
    int reserved;
    manycore_report_t report;
    void *context;
} manycore_rcu_config_t;

/* A domain, in *rcu. Null for the usual configuration. MANYCORE_INVALID. */
manycore_status_t manycore_rcu_create(const manycore_rcu_config_t *config, manycore_rcu_t **rcu);

/*
 * Destroys what waits for it, and the domain. MANYCORE_BUSY while a thread is registered, and in a
 * destructor.
 */
manycore_status_t manycore_rcu_destroy(manycore_rcu_t *rcu);

/* What waits to be destroyed, in bytes, with the bags in which it waits: 1 KiB for up to 61
   objects. */
size_t manycore_rcu_held_bytes(const manycore_rcu_t *rcu);

/*
 * Lets the calling thread take part. MANYCORE_INVALID in a destructor that manycore_rcu_destroy
 * runs.
 */
manycore_status_t manycore_rcu_register(manycore_rcu_t *rcu, manycore_rcu_thread_t **self);

/*
 * The same, for a thread that often says that it has no pointers, by manycore_rcu_quiescent: its
 * sections cost nothing that other threads could see. Everybody waits for a thread that does not
 * say so; before it sleeps it goes offline.
 */
manycore_status_t manycore_rcu_register_qsbr(manycore_rcu_t *rcu, manycore_rcu_thread_t **self);

/*
 * The opposite of both. MANYCORE_BUSY in a section and in a destructor that it runs,
 * MANYCORE_NOT_OWNER on another thread. What it has added is left to the others.
 */
manycore_status_t manycore_rcu_unregister(manycore_rcu_thread_t *self);

/* Begins and ends a section; sections may be nested. At the end of the outermost one, what is ripe
   is destroyed, on this thread. */
void manycore_rcu_read_lock(manycore_rcu_thread_t *self);
void manycore_rcu_read_unlock(manycore_rcu_thread_t *self);

/*
 * Calls `destroy` with the head of an object that no thread can find any more, once, after all
 * sections that are open now, on any thread that takes part, or in manycore_rcu_destroy. Until then
 * it counts for this many bytes. Does not allocate, but for a list now and then. Outside a section
 * it may wait for room (see limit_bytes), and then the caller must not hold a lock that readers
 * take. `destroy` may read in sections of its thread's, and call this itself. MANYCORE_NULL,
 * MANYCORE_NOT_OWNER; MANYCORE_NO_SESSION if the thread is offline.
 */
manycore_status_t manycore_rcu_call(manycore_rcu_thread_t *self, manycore_rcu_head_t *head,
                                    size_t bytes,
                                    void (*destroy)(manycore_rcu_head_t *head));

/*
 * Waits until all sections have ended that were open when it was called, and then destroys what it
 * can. MANYCORE_DEADLOCK in a section, and in a destructor that `self` runs.
 */
manycore_status_t manycore_rcu_synchronize(manycore_rcu_thread_t *self);

/*
 * For manycore_rcu_register_qsbr: the thread has no pointers now. MANYCORE_BUSY in a section and in
 * a destructor, MANYCORE_INVALID for another thread.
 */
manycore_status_t manycore_rcu_quiescent(manycore_rcu_thread_t *self);

/* No thread has to wait for it, which must not read; and it takes part again. As above. */
manycore_status_t manycore_rcu_offline(manycore_rcu_thread_t *self);
manycore_status_t manycore_rcu_online(manycore_rcu_thread_t *self);

#ifdef MANYCORE_TSAN
/* The end of every section is ordered before every destruction, which is what a grace period is
   for. */
static inline void manycore_rcu_read_unlock_tsan(manycore_rcu_thread_t *self)
{
    __tsan_release((void *)(uintptr_t)&manycore_rcu_create);
    manycore_rcu_read_unlock(self);
}
static inline manycore_status_t manycore_rcu_quiescent_tsan(manycore_rcu_thread_t *self)
{
    __tsan_release((void *)(uintptr_t)&manycore_rcu_create);
    return manycore_rcu_quiescent(self);
}
static inline manycore_status_t manycore_rcu_offline_tsan(manycore_rcu_thread_t *self)
{
    __tsan_release((void *)(uintptr_t)&manycore_rcu_create);
    return manycore_rcu_offline(self);
}
static inline manycore_status_t manycore_rcu_unregister_tsan(manycore_rcu_thread_t *self)
{
    __tsan_release((void *)(uintptr_t)&manycore_rcu_create);
    return manycore_rcu_unregister(self);
}
static inline void manycore_rcu_destroy_tsan_run(manycore_rcu_head_t *head)
{
    void (*destroy)(manycore_rcu_head_t *) = (void (*)(manycore_rcu_head_t *))(uintptr_t)head->extra;
    __tsan_acquire((void *)(uintptr_t)&manycore_rcu_create);
    destroy(head);
}
static inline manycore_status_t manycore_rcu_call_tsan(manycore_rcu_thread_t *self,
                                                       manycore_rcu_head_t *head, size_t bytes,
                                                       void (*destroy)(manycore_rcu_head_t *head))
{
    if (head == NULL || destroy == NULL)
        return MANYCORE_NULL;
    head->extra = (void *)(uintptr_t)destroy;
    __tsan_release((void *)(uintptr_t)&manycore_rcu_create);
    return manycore_rcu_call(self, head, bytes, manycore_rcu_destroy_tsan_run);
}
static inline manycore_status_t manycore_rcu_synchronize_tsan(manycore_rcu_thread_t *self)
{
    manycore_status_t status = manycore_rcu_synchronize(self);
    __tsan_acquire((void *)(uintptr_t)&manycore_rcu_create);
    return status;
}
#define manycore_rcu_read_unlock manycore_rcu_read_unlock_tsan
#define manycore_rcu_quiescent manycore_rcu_quiescent_tsan
#define manycore_rcu_offline manycore_rcu_offline_tsan
#define manycore_rcu_unregister manycore_rcu_unregister_tsan
#define manycore_rcu_call manycore_rcu_call_tsan
#define manycore_rcu_synchronize manycore_rcu_synchronize_tsan
#endif

#ifdef __cplusplus
}
#endif

#endif
