/*
 * A map of byte strings, for many threads: a thread that reads never waits, and a thread that
 * changes a record waits only for those who change the same one, or keep all others out.
 *
 *     manycore_map_create(NULL, &map);
 *
 *     manycore_map_set(map, "apples", 6, "3", 1);             by any thread; it need not register
 *     manycore_map_get(map, "apples", 6, print, NULL);        calls print with the record
 *     manycore_map_change(map, "apples", 6, decide, NULL);    locks it, asks decide once
 *
 *     manycore_map_begin(map);                                all changes up to the commit:
 *     manycore_map_set(map, "pears", 5, "1", 1);              others see at once or not at all
 *     manycore_map_remove(map, "apples", 6);
 *     manycore_map_commit(map);
 *
 *     manycore_map_destroy(map);
 *
 * What is called with a record may use other maps; a function of the same map returns MANYCORE_BUSY
 * there. The bytes that it is given stay until it returns, and do not change. A thread that ends
 * aborts its transaction, and lets others in.
 *
 * Keys and values have up to 4 GiB less one byte; otherwise MANYCORE_INVALID. A map must not be
 * used in a child of fork if another thread may have used it at the time.
 */
#ifndef MANYCORE_MAP_H
#define MANYCORE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include <manycore/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct manycore_map manycore_map_t;

/* Limits. Set all to zero, `size` to sizeof(manycore_map_config_t), and then what is to differ:
   zero is the usual value. */
typedef struct manycore_map_config {
    size_t size;
    size_t records;   /* for which there is room before the table has to grow, up to 2^40. 0 */
    /* of each thread, for what a transaction changes, or is changed while a for_each goes on. 64
       MiB */
    size_t log_bytes;
} manycore_map_config_t;

typedef struct manycore_map_bytes {
    const void *data;
    size_t size;
} manycore_map_bytes_t;

/* Is called with a record. Not 0 to go on, where there may be more. */
typedef int (*manycore_map_visit_t)(void *context, const void *key, size_t key_size,
                                    const void *value, size_t value_size);

/* What becomes of a record. */
typedef enum manycore_map_decision {
    MANYCORE_MAP_KEEP = 0,   /* it stays, or stays away */
    MANYCORE_MAP_REMOVE = 1, /* it goes, or stays away */
    MANYCORE_MAP_PUT = 2     /* it gets the new value */
} manycore_map_decision_t;

/*
 * Is asked what becomes of the record of the key with this number; `value` is null if there is
 * none, and not if it is empty. For MANYCORE_MAP_PUT it sets *new_value, which is copied when it
 * returns.
 */
typedef int (*manycore_map_decide_t)(void *context, size_t index, const void *value, size_t size,
                                     manycore_map_bytes_t *new_value);

/* Null for the usual configuration. MANYCORE_INVALID. */
manycore_status_t manycore_map_create(const manycore_map_config_t *config, manycore_map_t **map);

/* MANYCORE_BUSY if a thread is in a call or a transaction, or keeps others out. No other thread
   uses the map meanwhile or later. */
manycore_status_t manycore_map_destroy(manycore_map_t *map);

/* Calls `visit`, which may be null, with the key's record. MANYCORE_NOT_FOUND. */
manycore_status_t manycore_map_get(const manycore_map_t *map, const void *key, size_t key_size,
                                   manycore_map_visit_t visit, void *context);

/* The key gets a value. As all functions that change something: MANYCORE_FAILED in a transaction
   that can only be aborted. */
manycore_status_t manycore_map_set(const manycore_map_t *map, const void *key, size_t key_size,
                                   const void *value, size_t value_size);

/* MANYCORE_NOT_FOUND. */
manycore_status_t manycore_map_remove(const manycore_map_t *map, const void *key, size_t key_size);

/*
 * Locks the key's record, or its place, and asks `decide` once what becomes of it. Meanwhile no
 * other thread changes it; others read what it was. MANYCORE_INVALID if the answer is none of the
 * three: nothing has happened then.
 */
manycore_status_t manycore_map_change(const manycore_map_t *map, const void *key, size_t key_size,
                                      manycore_map_decide_t decide,
                                      void *context);

/*
 * The same with several keys, in their order: all are locked first, and others see all changes at
 * once. A key that comes twice is given what was decided before. MANYCORE_TOO_LARGE, before
 * `decide` is asked.
 */
manycore_status_t manycore_map_change_all(const manycore_map_t *map,
                                          const manycore_map_bytes_t *keys, size_t count,
                                          manycore_map_decide_t decide, void *context);

/* Calls `visit` with every record, as they all are at one moment, until it returns 0. */
manycore_status_t manycore_map_for_each(const manycore_map_t *map, manycore_map_visit_t visit,
                                        void *context);

/* The same with one part of them, numbered from 0 on, of this many: each part at a moment of its
   own. MANYCORE_INVALID. */
manycore_status_t manycore_map_for_each_of(const manycore_map_t *map, size_t part, size_t parts,
                                           manycore_map_visit_t visit,
                                           void *context);

/* Where to begin in the map's order, which is that of no property of the keys, but stays the
   same. */
typedef enum manycore_map_from {
    MANYCORE_MAP_FIRST = 0,
    MANYCORE_MAP_AT = 1,   /* the key's record, or if there is none the next */
    MANYCORE_MAP_AFTER = 2 /* the one that comes after the key, which may be there or not */
} manycore_map_from_t;

/*
 * Calls `visit`, which may be null, with the first record from there on; MANYCORE_NOT_FOUND. Who
 * goes on from each key to the next comes once to every record that is there all the time.
 * MANYCORE_INVALID.
 */
manycore_status_t manycore_map_next(const manycore_map_t *map, int from, const void *key,
                                    size_t key_size, manycore_map_visit_t visit,
                                    void *context);

/*
 * Begins a transaction: until it ends, all that this thread does with the map belongs to it, and
 * other threads that would change something wait. A thread that waits in it for what another is to
 * change waits for ever. MANYCORE_ALREADY in a transaction, and while the thread keeps others
 * out.
 */
manycore_status_t manycore_map_begin(const manycore_map_t *map);

/* The same, but MANYCORE_BUSY if it would have to wait. */
manycore_status_t manycore_map_try_begin(const manycore_map_t *map);

/* Ends it: others see all of it, at once. MANYCORE_NO_SESSION; MANYCORE_FAILED if it could only be
   aborted, and was. */
manycore_status_t manycore_map_commit(const manycore_map_t *map);

/* Ends it as if it had not been. MANYCORE_NO_SESSION. */
manycore_status_t manycore_map_abort(const manycore_map_t *map);

/* Takes all records out, for others at one moment. */
manycore_status_t manycore_map_clear(const manycore_map_t *map);

/* Waits until no other thread changes anything, and keeps them from it. This thread goes on.
   MANYCORE_ALREADY. */
manycore_status_t manycore_map_keep_others_out(const manycore_map_t *map);

/* The end of that. MANYCORE_NO_SESSION if this thread keeps no thread out, MANYCORE_ALREADY in a
   transaction. */
manycore_status_t manycore_map_let_others_in(const manycore_map_t *map);

/* How many records there are, and bytes of their keys and values: exact when no other thread
   changes any. 0 for null. */
uint64_t manycore_map_count(const manycore_map_t *map);
uint64_t manycore_map_bytes(const manycore_map_t *map);

#ifdef __cplusplus
}
#endif

#endif
