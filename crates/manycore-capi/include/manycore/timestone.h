/*
 * Durable transactions: objects and maps in memory, which threads read without waiting and change
 * several at once, and files in which what has committed is found again after a crash.
 * docs/src/timestone.md says what is promised.
 *
 *     ts_store_t *store;
 *     ts_member_t *me;
 *     const ts_map_t *accounts;
 *     ts_open("bank", NULL, &store);                    a directory: creates, locks, recovers
 *     ts_map(store, "accounts", sizeof(uint64_t), sizeof(struct account), &accounts);
 *     ts_register(store, &me);                                      for each thread
 *
 *     do {
 *         ts_begin(me, TS_SNAPSHOT);
 *         ts_map_get(me, accounts, &key, &account);
 *         account.balance -= 30;
 *         ts_map_put(me, accounts, &key, &account);
 *         status = ts_commit(me, TS_DURABLE, NULL);                 on the disk when it returns
 *     } while (status == MANYCORE_CONFLICT);                        another thread was faster
 *
 *     ts_unregister(me);
 *     ts_close(store);
 *
 * All functions but ts_message and ts_durable return a status, and change nothing if it is not
 * MANYCORE_OK. MANYCORE_NULL: a pointer is null that must not be; where null is allowed, it says so
 * here. A child of fork has no part in its parent's stores.
 */
#ifndef MANYCORE_TIMESTONE_H
#define MANYCORE_TIMESTONE_H

#include <stddef.h>
#include <stdint.h>

#include <manycore/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ts_store ts_store_t;
/* A thread that takes part. */
typedef struct ts_member ts_member_t;
/* A map of a store; there until ts_close. */
typedef struct ts_map ts_map_t;

/* When ts_commit returns, and what a crash may take back. */
typedef enum ts_durability {
    TS_DURABLE = 0,  /* when it is on the disk; nothing */
    /* when the operating system has it; a power cut, what was committed within the window */
    TS_BUFFERED = 1,
    TS_EVENTUAL = 2  /* at once; a crash, what was committed within the window */
} ts_durability_t;

/* What ts_begin begins. */
typedef enum ts_session {
    /* a transaction: reads as of its begin; of two that change the same, one runs again */
    TS_SNAPSHOT = 0,
    TS_SERIALIZABLE = 1, /* likewise; and what it has read is still so when it commits */
    TS_LINEARIZABLE = 2, /* likewise, and in the order of time */
    TS_READ = 3,         /* reads what is on the disk, and what this thread has committed */
    TS_READ_LATEST = 4   /* reads the latest, which a crash may take back */
} ts_session_t;

/*
 * A function that a transaction consists of, by a name and a version. The journal has that it was
 * called and with which bytes, if that is shorter than what it has written; ts_open calls it again
 * after a crash. So it does the same again: what it does hangs on its arguments, which are aligned
 * to 8 then, on what it finds in the store, and on ts_input, and on nothing else. It finds maps and
 * objects by ts_find_map and ts_find_root. A function that does something else from now on has
 * another version. It returns 0, or any other number to give the transaction up, and leaves in no
 * other way.
 *
 * `me` is there until it returns, and is not that of the caller, which is MANYCORE_BUSY meanwhile;
 * it neither begins nor ends anything.
 */
typedef struct ts_operation {
    const char *name;
    uint32_t version;
    uint32_t reserved; /* 0 */
    int (*run)(ts_member_t *me, const void *arguments, size_t bytes);
} ts_operation_t;

/* Limits. Set all to zero, `size` to sizeof(ts_config_t), and then what is to differ: zero is the
   usual value. */
typedef struct ts_config {
    size_t size;
    uint64_t journal_bytes; /* if the store is made now; 128 MiB */
    uint64_t heap_bytes;    /* addresses that are reserved for objects; 64 GiB */
    /* of each thread; a transaction's record takes half of it at most. 256 KiB */
    uint64_t ring_bytes;
    uint64_t window_ns;     /* within which a commit is written that no thread waits for; 10 ms */
    /* those that the program calls, and that the journal may have; none. They are copied. */
    const ts_operation_t *operations;
    size_t operation_count;
} ts_config_t;

/* What is in a store's files. */
typedef struct ts_contents {
    uint64_t horizon;       /* all commits up to this are there */
    uint64_t transactions;  /* in the journal: recovery applies them to the image */
    uint64_t journal_bytes; /* of them */
    uint64_t objects;       /* after recovery; ts_probe does not count them */
    uint64_t object_bytes;
    int is_closed; /* opening it recovers nothing */
    int reserved;
} ts_contents_t;

/* What the calling thread was told last by a function here that has failed with an error of a
   store. Valid until the next one. */
const char *ts_message(void);

/* ---- stores ---- */

/*
 * Opens the store in a directory, or makes one there. `config` may be null. MANYCORE_LOCKED if it
 * is open already, MANYCORE_CORRUPTED, MANYCORE_OTHER_VERSION, MANYCORE_IO, MANYCORE_FULL;
 * MANYCORE_OTHER_VERSION also if the journal has calls of an operation that is not registered, or
 * that does something else than it did, and MANYCORE_OTHER_TYPE if two have one name and version;
 * MANYCORE_INVALID for a size of the configuration that is not known or a limit that is absurd.
 */
manycore_status_t ts_open(const char *directory, const ts_config_t *config, ts_store_t **store);

/* A store without files: the same in all else. `config` may be null. */
manycore_status_t ts_open_memory(const ts_config_t *config, ts_store_t **store);

/*
 * Writes what has committed, and closes the store, so that it is opened fast. MANYCORE_BUSY, and
 * nothing has changed, if a thread is registered; after any other status the store is gone: what
 * was acknowledged is in the files.
 */
manycore_status_t ts_close(ts_store_t *store);

/* Returns when all that has committed is on the disk. MANYCORE_POISONED, MANYCORE_IO,
   MANYCORE_FULL, as the next five. */
manycore_status_t ts_sync(ts_store_t *store);

/* Writes an image of all objects, so that the journal is empty; the store does that by itself when
   the journal is half full. */
manycore_status_t ts_checkpoint(ts_store_t *store);

/* Writes a copy into a directory that has no store, while transactions go on. */
manycore_status_t ts_backup(ts_store_t *store, const char *directory);

/* Returns when the commit that has this ticket, and each before it, is on the disk.
   MANYCORE_INVALID for a ticket of the future. */
manycore_status_t ts_wait(ts_store_t *store, uint64_t ticket);

/* All commits with tickets up to this are on the disk. */
uint64_t ts_durable(const ts_store_t *store);

/* Looks at the files of a store that no program has open: at its journal, or at all of it.
   `contents` may be null. */
manycore_status_t ts_probe(const char *directory, ts_contents_t *contents);
manycore_status_t ts_verify(const char *directory, ts_contents_t *contents);

/* ---- threads and transactions ---- */

/* Lets the calling thread take part. It is the only one that uses `me`: others are told
   MANYCORE_NOT_OWNER. */
manycore_status_t ts_register(ts_store_t *store, ts_member_t **me);

/* The opposite. MANYCORE_BUSY if a session is open. */
manycore_status_t ts_unregister(ts_member_t *me);

/* Begins a session: ts_session_t. MANYCORE_BUSY if one is open, MANYCORE_INVALID,
   MANYCORE_POISONED. */
manycore_status_t ts_begin(ts_member_t *me, int kind);

/* Ends the session as if it had not been; after a conflict it waits a little. MANYCORE_NO_SESSION,
   as all that follow. */
manycore_status_t ts_abort(ts_member_t *me);

/*
 * Ends the session and commits; returns as `durability` (ts_durability_t) says. `ticket`, which may
 * be null, is for ts_wait. MANYCORE_CONFLICT, or MANYCORE_TOO_LARGE: the session has ended as if it
 * had not been. MANYCORE_INVALID: it is still open. MANYCORE_POISONED, MANYCORE_IO or
 * MANYCORE_FULL: it has committed, and its way to the disk has failed.
 */
manycore_status_t ts_commit(ts_member_t *me, int durability, uint64_t *ticket);

/* As ts_commit with TS_EVENTUAL, within a window of its own. */
manycore_status_t ts_commit_within(ts_member_t *me, uint64_t window_ns, uint64_t *ticket);

/* ---- objects ---- */

/*
 * Objects are plain bytes, aligned to 8, and are known by ids, which are the same when the store is
 * opened again; 0 is none. What ts_deref and ts_lock give is good until the session's end. An id of
 * no object is MANYCORE_INVALID, and so is that of an object that was freed for some time. In a
 * session that only reads, changes are MANYCORE_READS_ONLY. After MANYCORE_CONFLICT the session can
 * only be aborted.
 */

/* The object of this name, of `size` bytes up to 8184: zeros, if there was none.
   MANYCORE_OTHER_TYPE if the name is of something else. */
manycore_status_t ts_root(ts_store_t *store, const char *name, size_t size, uint64_t *id);

/* What the session sees of an object. */
manycore_status_t ts_deref(ts_member_t *me, uint64_t id, const void **object);

/* Locks an object: *object is a copy to be changed. MANYCORE_CONFLICT. */
manycore_status_t ts_lock(ts_member_t *me, uint64_t id, void **object);

/* Locks an object that the session does not change, so that no other does before the commit.
   MANYCORE_CONFLICT. */
manycore_status_t ts_lock_const(ts_member_t *me, uint64_t id);

/*
 * A new object with these bytes; with zeros, if `data` is null. It is there when the session has
 * committed and has changed another one. MANYCORE_INVALID if `size` is 0 or more than 8184;
 * MANYCORE_FULL.
 */
manycore_status_t ts_alloc(ts_member_t *me, const void *data, size_t size, uint64_t *id);

/* The object ends with the commit. Nothing leads to it then. MANYCORE_CONFLICT. */
manycore_status_t ts_free(ts_member_t *me, uint64_t id);

/* Lets an object that is locked lead to another. */
static inline void ts_assign(uint64_t *place, uint64_t id)
{
    *place = id;
}

/* ---- maps ---- */

/*
 * The map of this name, which is made if there is none. A key and a value have 8176 bytes together
 * at most. In Rust it is a Map<[u8; key_bytes], [u8; value_bytes]>. MANYCORE_OTHER_TYPE if the name
 * is of something else, MANYCORE_INVALID.
 */
manycore_status_t ts_map(ts_store_t *store, const char *name, size_t key_bytes,
                         size_t value_bytes, const ts_map_t **map);

/* Copies the value of a key; `value` may be null. MANYCORE_NOT_FOUND. A map of another store is
   MANYCORE_INVALID, as for all of these. */
manycore_status_t ts_map_get(ts_member_t *me, const ts_map_t *map, const void *key, void *value);

/* Sets the value of a key. MANYCORE_CONFLICT, MANYCORE_FULL. */
manycore_status_t ts_map_put(ts_member_t *me, const ts_map_t *map, const void *key,
                             const void *value);

/* Removes a key. MANYCORE_NOT_FOUND, MANYCORE_CONFLICT. */
manycore_status_t ts_map_remove(ts_member_t *me, const ts_map_t *map, const void *key);

/* Calls `visit` with the context for each key and value, as the session sees them now, in no
   order. */
manycore_status_t ts_map_each(ts_member_t *me, const ts_map_t *map,
                              void (*visit)(void *context, const void *key, const void *value),
                              void *context);

/* ---- operations ---- */

/*
 * Calls an operation of the store's configuration in a transaction of its own, again as long as
 * other threads are faster, and commits it: serializable, and as ts_commit otherwise. `arguments`
 * may be null if there are 0 bytes. MANYCORE_BUSY if a session is open, MANYCORE_OTHER_VERSION if
 * no such operation is registered, MANYCORE_TOO_LARGE; or what the operation has returned, if that
 * is not 0: it is as if it had not been called.
 */
int ts_call(ts_member_t *me, const ts_operation_t *operation, const void *arguments, size_t bytes,
            int durability, uint64_t *ticket);

/* In an operation: what ts_root or ts_map has made before. A map is good until the operation
   returns. MANYCORE_OTHER_TYPE if the name is of something else, or of nothing; MANYCORE_NO_SESSION
   where no operation is. */
manycore_status_t ts_find_root(ts_member_t *me, const char *name, size_t size, uint64_t *id);
manycore_status_t ts_find_map(ts_member_t *me, const char *name, size_t key_bytes,
                              size_t value_bytes, const ts_map_t **map);

/*
 * In an operation: these bytes hang on more than the store has, as the time or a random number. The
 * journal keeps them; when the operation is called again, they are replaced by what they were.
 */
manycore_status_t ts_input(ts_member_t *me, void *value, size_t size);

#ifdef MANYCORE_TSAN
/* All sessions are ordered as if they ended and began under one lock: see docs/src/capi.md. */
static inline manycore_status_t ts_tsan_begin(ts_member_t *me, int kind)
{
    manycore_status_t status = ts_begin(me, kind);
    __tsan_acquire((void *)(uintptr_t)&ts_open);
    return status;
}

static inline manycore_status_t ts_tsan_abort(ts_member_t *me)
{
    __tsan_release((void *)(uintptr_t)&ts_open);
    return ts_abort(me);
}

static inline manycore_status_t ts_tsan_commit(ts_member_t *me, int durability, uint64_t *ticket)
{
    __tsan_release((void *)(uintptr_t)&ts_open);
    return ts_commit(me, durability, ticket);
}

static inline manycore_status_t ts_tsan_commit_within(ts_member_t *me, uint64_t window_ns,
                                                      uint64_t *ticket)
{
    __tsan_release((void *)(uintptr_t)&ts_open);
    return ts_commit_within(me, window_ns, ticket);
}

static inline manycore_status_t ts_tsan_lock(ts_member_t *me, uint64_t id, void **object)
{
    manycore_status_t status = ts_lock(me, id, object);
    __tsan_acquire((void *)(uintptr_t)&ts_open);
    return status;
}

/* An operation finds something first. */
static inline manycore_status_t ts_tsan_find_root(ts_member_t *me, const char *name, size_t size,
                                                  uint64_t *id)
{
    manycore_status_t status = ts_find_root(me, name, size, id);
    __tsan_acquire((void *)(uintptr_t)&ts_open);
    return status;
}

static inline manycore_status_t ts_tsan_find_map(ts_member_t *me, const char *name,
                                                 size_t key_bytes, size_t value_bytes,
                                                 const ts_map_t **map)
{
    manycore_status_t status = ts_find_map(me, name, key_bytes, value_bytes, map);
    __tsan_acquire((void *)(uintptr_t)&ts_open);
    return status;
}

static inline int ts_tsan_call(ts_member_t *me, const ts_operation_t *operation,
                               const void *arguments, size_t bytes, int durability,
                               uint64_t *ticket)
{
    int status;
    __tsan_release((void *)(uintptr_t)&ts_open);
    status = ts_call(me, operation, arguments, bytes, durability, ticket);
    __tsan_release((void *)(uintptr_t)&ts_open);
    return status;
}

#define ts_find_root(me, name, size, id) ts_tsan_find_root((me), (name), (size), (id))
#define ts_find_map(me, name, key_bytes, value_bytes, map) \
    ts_tsan_find_map((me), (name), (key_bytes), (value_bytes), (map))
#define ts_call(me, operation, arguments, bytes, durability, ticket) \
    ts_tsan_call((me), (operation), (arguments), (bytes), (durability), (ticket))
#define ts_begin(me, kind) ts_tsan_begin((me), (kind))
#define ts_abort(me) ts_tsan_abort(me)
#define ts_commit(me, durability, ticket) ts_tsan_commit((me), (durability), (ticket))
#define ts_commit_within(me, window_ns, ticket) ts_tsan_commit_within((me), (window_ns), (ticket))
#define ts_lock(me, id, object) ts_tsan_lock((me), (id), (object))
#endif

#ifdef __cplusplus
}
#endif

#endif
