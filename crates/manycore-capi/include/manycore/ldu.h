/*
 * Lightweight deferred update: insertions and removals are logged without a lock, and applied to
 * the structure when somebody reads it. For structures that are updated all the time and hardly
 * read.
 *
 * An object carries a node, and has one owner at a time, who alone inserts and removes it. An
 * insertion and a removal that were not applied yet cancel. A thread that reads acquires the
 * structure's lock, drains the log into the structure, and looks:
 *
 *     manycore_ldu_create(MANYCORE_LDU_PER_CORE, &log);
 *
 *     manycore_ldu_insert(log, &object->node);            by its owner, without a lock
 *     manycore_ldu_remove(log, &object->node);
 *     manycore_ldu_retire(log, &object->node);            at last, instead of freeing it
 *
 *     manycore_mutex_lock(&lock);                         by the thread that reads, or now and then
 *     manycore_ldu_drain(log, &target, &structure, NULL);
 *     ...
 *     manycore_mutex_unlock(&lock);
 *
 * Updates of different objects are applied in any order: what the structure is like afterwards must
 * not depend on it. An object does not change while it may be in the log, which is until it was
 * removed and the log drained. Logs must not be used in a child of fork if another thread may have
 * used them at the time.
 */
#ifndef MANYCORE_LDU_H
#define MANYCORE_LDU_H

#include <stddef.h>
#include <stdint.h>

#include <manycore/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A part of an object. All zero: the object is not in the structure. */
typedef struct manycore_ldu_node {
    uint64_t opaque[3];
} manycore_ldu_node_t;

#define MANYCORE_LDU_NODE_INIT {{0, 0, 0}}

/* How entries are queued. */
typedef enum manycore_ldu_arrangement {
    MANYCORE_LDU_GLOBAL = 0,  /* one queue, at whose head all meet */
    MANYCORE_LDU_PER_CORE = 1 /* one for each core: a thread that drains looks at all of them */
} manycore_ldu_arrangement_t;

typedef struct manycore_ldu manycore_ldu_t;
typedef struct manycore_ldu_table manycore_ldu_table_t;

/* A log, in *log. MANYCORE_INVALID. */
manycore_status_t manycore_ldu_create(int arrangement, manycore_ldu_t **log);

/*
 * A log that has a place in the table of each core, which it shares with other structures' logs:
 * for many structures, each of which is drained by itself. The table may be destroyed before its
 * logs are.
 */
manycore_status_t manycore_ldu_create_in(const manycore_ldu_table_t *table, manycore_ldu_t **log);

/* With this many places for each core, 1 to 2^20. */
manycore_status_t manycore_ldu_table_create(size_t places, manycore_ldu_table_t **table);
manycore_status_t manycore_ldu_table_destroy(manycore_ldu_table_t *table);

/* The log has been drained since its last use. */
manycore_status_t manycore_ldu_destroy(manycore_ldu_t *log);

/*
 * The object comes into the structure, and leaves it, as far as its owner is concerned; they
 * alternate, with the same log each time. The node stays where it is. MANYCORE_REPEATED if the same
 * was done last and is not applied yet; then nothing has changed.
 */
manycore_status_t manycore_ldu_insert(const manycore_ldu_t *log, manycore_ldu_node_t *node);
manycore_status_t manycore_ldu_remove(const manycore_ldu_t *log, manycore_ldu_node_t *node);

/* Its owner does not touch it any more, and it is not in the structure: a thread that drains the
   log then releases it. */
manycore_status_t manycore_ldu_retire(const manycore_ldu_t *log, manycore_ldu_node_t *node);

typedef enum manycore_ldu_operation { MANYCORE_LDU_INSERT = 0,
MANYCORE_LDU_REMOVE = 1 } manycore_ldu_operation_t;

/* What a drain does with the structure. They must not use this log. */
typedef struct manycore_ldu_target {
    void (*apply)(void *structure, int operation, manycore_ldu_node_t *node);
    /* its owner has retired it, and no other thread has it: free it */
    void (*release)(void *structure, manycore_ldu_node_t *node);
} manycore_ldu_target_t;

/* What a drain did. */
typedef struct manycore_ldu_drained {
    uint64_t entries; /* that were in the log */
    uint64_t applied; /* updates; the rest had cancelled each other */
} manycore_ldu_drained_t;

/*
 * Applies all that was logged before. One thread at a time: the thread that has the structure's
 * lock. `drained` may be null.
 */
manycore_status_t manycore_ldu_drain(const manycore_ldu_t *log,
                                     const manycore_ldu_target_t *target, void *structure,
                                     manycore_ldu_drained_t *drained);

#ifdef MANYCORE_TSAN
/* What an owner does before it logs an update is ordered before that is applied, object by
   object. */
struct manycore_ldu_tsan {
    const manycore_ldu_target_t *target;
    void *structure;
};
static inline void manycore_ldu_apply_tsan(void *structure, int operation,
                                           manycore_ldu_node_t *node)
{
    struct manycore_ldu_tsan *real = (struct manycore_ldu_tsan *)structure;
    __tsan_acquire(node);
    real->target->apply(real->structure, operation, node);
    __tsan_release(node);
}
static inline void manycore_ldu_release_tsan(void *structure, manycore_ldu_node_t *node)
{
    struct manycore_ldu_tsan *real = (struct manycore_ldu_tsan *)structure;
    __tsan_acquire(node);
    real->target->release(real->structure, node);
}
static inline manycore_status_t manycore_ldu_drain_tsan(const manycore_ldu_t *log,
                                                        const manycore_ldu_target_t *target,
                                                        void *structure,
                                                        manycore_ldu_drained_t *drained)
{
    struct manycore_ldu_tsan real;
    const manycore_ldu_target_t told = {manycore_ldu_apply_tsan, manycore_ldu_release_tsan};
    if (target == NULL || target->apply == NULL || target->release == NULL)
        return MANYCORE_NULL;
    real.target = target;
    real.structure = structure;
    return manycore_ldu_drain(log, &told, &real, drained);
}
static inline manycore_status_t manycore_ldu_insert_tsan(const manycore_ldu_t *log,
                                                         manycore_ldu_node_t *node)
{
    __tsan_release(node);
    return manycore_ldu_insert(log, node);
}
static inline manycore_status_t manycore_ldu_remove_tsan(const manycore_ldu_t *log,
                                                         manycore_ldu_node_t *node)
{
    __tsan_release(node);
    return manycore_ldu_remove(log, node);
}
static inline manycore_status_t manycore_ldu_retire_tsan(const manycore_ldu_t *log,
                                                         manycore_ldu_node_t *node)
{
    __tsan_release(node);
    return manycore_ldu_retire(log, node);
}
#define manycore_ldu_insert manycore_ldu_insert_tsan
#define manycore_ldu_remove manycore_ldu_remove_tsan
#define manycore_ldu_retire manycore_ldu_retire_tsan
#define manycore_ldu_drain manycore_ldu_drain_tsan
#endif

#ifdef __cplusplus
}
#endif

#endif
