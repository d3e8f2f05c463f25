/* TimeStone: what every function says to a mistake; conflicts; sessions that only read; stores in
   memory; a child of fork. */
#include "expect.h"

#include <manycore/timestone.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static ts_store_t *store;
static ts_member_t *me;
static const ts_map_t *map;

static ts_config_t small(void)
{
    ts_config_t config;
    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.journal_bytes = 1 << 20;
    config.heap_bytes = 64 << 20;
    config.ring_bytes = 16 << 10;
    return config;
}

static void *use_of_another(void *data)
{
    void *object;
    (void)data;
    EXPECT(MANYCORE_NOT_OWNER, ts_begin(me, TS_SNAPSHOT));
    EXPECT(MANYCORE_NOT_OWNER, ts_commit(me, TS_DURABLE, NULL));
    EXPECT(MANYCORE_NOT_OWNER, ts_lock(me, 64, &object));
    EXPECT(MANYCORE_NOT_OWNER, ts_unregister(me));
    return NULL;
}

static void opening(const char *directory)
{
    ts_config_t config = small();
    ts_store_t *other;
    EXPECT(MANYCORE_NULL, ts_open(NULL, &config, &store));
    EXPECT(MANYCORE_NULL, ts_open(directory, &config, NULL));
    EXPECT(MANYCORE_NULL, ts_open_memory(&config, NULL));
    config.size++;
    EXPECT(MANYCORE_INVALID, ts_open(directory, &config, &store));
    EXPECT(MANYCORE_INVALID, ts_open_memory(&config, &store));
    config.size--;
    config.heap_bytes = ~(uint64_t)0;
    EXPECT(MANYCORE_INVALID, ts_open(directory, &config, &store));
    config.heap_bytes = 64 << 20;
    EXPECT(MANYCORE_INVALID, ts_open("\xff\xfe", &config, &store));
    EXPECT(MANYCORE_IO, ts_open("/proc/no/such/directory", &config, &store));
    EXPECT(1, strstr(ts_message(), "/proc/no/such/directory") != NULL);
    EXPECT(MANYCORE_NULL, ts_probe(NULL, NULL));
    EXPECT(MANYCORE_IO, ts_verify("/proc/no/such/directory", NULL));
    EXPECT(MANYCORE_OK, ts_open(directory, &config, &store));
    EXPECT(MANYCORE_LOCKED, ts_open(directory, &config, &other));
    EXPECT(MANYCORE_NULL, ts_close(NULL));
    EXPECT(MANYCORE_NULL, ts_sync(NULL));
    EXPECT(MANYCORE_NULL, ts_checkpoint(NULL));
    EXPECT(MANYCORE_NULL, ts_backup(store, NULL));
    EXPECT(MANYCORE_NULL, ts_backup(NULL, directory));
    EXPECT(MANYCORE_NULL, ts_wait(NULL, 0));
    EXPECT(MANYCORE_INVALID, ts_wait(store, ~(uint64_t)0));
    EXPECT(0, ts_durable(NULL));
    EXPECT(MANYCORE_NULL, ts_register(NULL, &me));
    EXPECT(MANYCORE_NULL, ts_register(store, NULL));
    EXPECT(MANYCORE_OK, ts_register(store, &me));
    EXPECT(MANYCORE_BUSY, ts_close(store));
}

static void sessions(void)
{
    void *object;
    const void *seen;
    uint64_t id, root;
    run(use_of_another, NULL);
    EXPECT(MANYCORE_NULL, ts_begin(NULL, TS_SNAPSHOT));
    EXPECT(MANYCORE_INVALID, ts_begin(me, 5));
    EXPECT(MANYCORE_INVALID, ts_begin(me, -1));
    EXPECT(MANYCORE_NO_SESSION, ts_abort(me));
    EXPECT(MANYCORE_NO_SESSION, ts_commit(me, TS_DURABLE, NULL));
    EXPECT(MANYCORE_NO_SESSION, ts_commit_within(me, 5, NULL));
    EXPECT(MANYCORE_NO_SESSION, ts_deref(me, 64, &seen));
    EXPECT(MANYCORE_NO_SESSION, ts_lock(me, 64, &object));
    EXPECT(MANYCORE_NO_SESSION, ts_lock_const(me, 64));
    EXPECT(MANYCORE_NO_SESSION, ts_free(me, 64));
    EXPECT(MANYCORE_NO_SESSION, ts_alloc(me, NULL, 8, &id));

    EXPECT(MANYCORE_INVALID, ts_root(store, "root", 0, &root));
    EXPECT(MANYCORE_INVALID, ts_root(store, "root", 8185, &root));
    EXPECT(MANYCORE_NULL, ts_root(store, NULL, 24, &root));
    EXPECT(MANYCORE_NULL, ts_root(store, "root", 24, NULL));
    EXPECT(MANYCORE_OK, ts_root(store, "root", 24, &root));
    EXPECT(MANYCORE_OTHER_TYPE, ts_root(store, "root", 32, &id));
    EXPECT(1, strstr(ts_message(), "root") != NULL);

    EXPECT(MANYCORE_OK, ts_begin(me, TS_SNAPSHOT));
    EXPECT(MANYCORE_BUSY, ts_begin(me, TS_READ));
    EXPECT(MANYCORE_BUSY, ts_unregister(me));
    EXPECT(MANYCORE_NULL, ts_deref(me, root, NULL));
    EXPECT(MANYCORE_NULL, ts_lock(me, root, NULL));
    EXPECT(MANYCORE_NULL, ts_alloc(me, NULL, 8, NULL));
    EXPECT(MANYCORE_INVALID, ts_alloc(me, NULL, 0, &id));
    EXPECT(MANYCORE_INVALID, ts_alloc(me, NULL, 8185, &id));
    for (id = 0; id < 4; id++) {
        static const uint64_t none[] = {0, 1, 1 << 30, ~(uint64_t)0};
        EXPECT(MANYCORE_INVALID, ts_deref(me, none[id], &seen));
        EXPECT(MANYCORE_INVALID, ts_lock(me, none[id], &object));
        EXPECT(MANYCORE_INVALID, ts_lock_const(me, none[id]));
        EXPECT(MANYCORE_INVALID, ts_free(me, none[id]));
    }
    EXPECT(MANYCORE_OK, ts_lock(me, root, &object));
    EXPECT(MANYCORE_OK, ts_alloc(me, "seven", 6, &id));
    ts_assign((uint64_t *)object, id);
    EXPECT(MANYCORE_INVALID, ts_commit(me, 3, NULL)); /* and it is still open */
    EXPECT(MANYCORE_OK, ts_commit(me, TS_DURABLE, NULL));

    EXPECT(MANYCORE_OK, ts_begin(me, TS_READ));
    EXPECT(MANYCORE_OK, ts_deref(me, root, &seen));
    EXPECT(id, *(const uint64_t *)seen);
    EXPECT(MANYCORE_OK, ts_deref(me, id, &seen));
    EXPECT(0, strcmp((const char *)seen, "seven"));
    EXPECT(MANYCORE_READS_ONLY, ts_lock(me, id, &object));
    EXPECT(MANYCORE_READS_ONLY, ts_free(me, id));
    EXPECT(MANYCORE_READS_ONLY, ts_alloc(me, NULL, 8, &id));
    EXPECT(MANYCORE_OK, ts_commit(me, TS_DURABLE, NULL));
    EXPECT(MANYCORE_OK, ts_begin(me, TS_READ_LATEST));
    EXPECT(MANYCORE_OK, ts_abort(me));
}

static void count(void *context, const void *key, const void *value)
{
    (void)value;
    *(int *)context += *(const int *)key;
}

static void maps(void)
{
    const ts_map_t *again, *elsewhere;
    ts_store_t *memory;
    ts_config_t config = small();
    int key = 1, sum = 0;
    long value = 10, found = 0;
    uint64_t tickets[100], i;
    EXPECT(MANYCORE_NULL, ts_map(store, NULL, 4, 8, &map));
    EXPECT(MANYCORE_NULL, ts_map(store, "map", 4, 8, NULL));
    EXPECT(MANYCORE_INVALID, ts_map(store, "map", 0, 8, &map));
    EXPECT(MANYCORE_INVALID, ts_map(store, "map", 8000, 200, &map));
    EXPECT(MANYCORE_INVALID, ts_map(store, "map", ~(size_t)0, ~(size_t)0, &map));
    EXPECT(MANYCORE_OTHER_TYPE, ts_map(store, "root", 4, 8, &map));
    EXPECT(MANYCORE_OK, ts_map(store, "map", sizeof key, sizeof value, &map));
    EXPECT(MANYCORE_OK, ts_map(store, "map", sizeof key, sizeof value, &again));
    EXPECT(1, map == again);
    EXPECT(MANYCORE_OTHER_TYPE, ts_map(store, "map", 8, 8, &again));
    EXPECT(MANYCORE_NO_SESSION, ts_map_get(me, map, &key, &value));

    EXPECT(MANYCORE_OK, ts_begin(me, TS_SERIALIZABLE));
    EXPECT(MANYCORE_NOT_FOUND, ts_map_get(me, map, &key, &found));
    EXPECT(MANYCORE_NOT_FOUND, ts_map_remove(me, map, &key));
    EXPECT(MANYCORE_NULL, ts_map_get(me, NULL, &key, &found));
    EXPECT(MANYCORE_NULL, ts_map_get(me, map, NULL, &found));
    EXPECT(MANYCORE_NULL, ts_map_put(me, map, &key, NULL));
    EXPECT(MANYCORE_NULL, ts_map_each(me, map, NULL, NULL));
    EXPECT(MANYCORE_OK, ts_map_put(me, map, &key, &value));
    EXPECT(MANYCORE_OK, ts_map_get(me, map, &key, NULL));
    EXPECT(MANYCORE_OK, ts_map_get(me, map, &key, &found));
    EXPECT(10, found);
    EXPECT(MANYCORE_OK, ts_open_memory(&config, &memory));
    EXPECT(MANYCORE_OK, ts_map(memory, "map", sizeof key, sizeof value, &elsewhere));
    EXPECT(MANYCORE_INVALID, ts_map_get(me, elsewhere, &key, &found));
    EXPECT(MANYCORE_OK, ts_close(memory));
    EXPECT(MANYCORE_OK, ts_commit_within(me, ~(uint64_t)0, &tickets[0]));

    /* Many on their way, and one wait. */
    for (i = 0; i < 100; i++) {
        key = (int)i;
        EXPECT(MANYCORE_OK, ts_begin(me, TS_SNAPSHOT));
        EXPECT(MANYCORE_OK, ts_map_put(me, map, &key, &value));
        EXPECT(MANYCORE_OK, ts_commit(me, TS_EVENTUAL, &tickets[i]));
    }
    EXPECT(MANYCORE_OK, ts_wait(store, tickets[99]));
    EXPECT(1, ts_durable(store) >= tickets[99]);
    EXPECT(MANYCORE_OK, ts_begin(me, TS_READ));
    EXPECT(MANYCORE_OK, ts_map_each(me, map, count, &sum));
    EXPECT(99 * 100 / 2, sum);
    EXPECT(MANYCORE_OK, ts_commit(me, TS_DURABLE, NULL));
}

/* Changes the key that the main thread is about to change. */
static void *faster(void *data)
{
    ts_member_t *other;
    int key = 1;
    long value = 77;
    (void)data;
    EXPECT(MANYCORE_OK, ts_register(store, &other));
    EXPECT(MANYCORE_OK, ts_begin(other, TS_SNAPSHOT));
    EXPECT(MANYCORE_OK, ts_map_put(other, map, &key, &value));
    EXPECT(MANYCORE_OK, ts_commit(other, TS_BUFFERED, NULL));
    EXPECT(MANYCORE_OK, ts_unregister(other));
    return NULL;
}

static void conflicts(void)
{
    int key = 1, i;
    long value = 1;
    char *large = (char *)calloc(1, 8000);
    uint64_t id;
    EXPECT(MANYCORE_OK, ts_begin(me, TS_SNAPSHOT));
    run(faster, NULL);
    EXPECT(MANYCORE_CONFLICT, ts_map_put(me, map, &key, &value));
    EXPECT(MANYCORE_CONFLICT, ts_map_put(me, map, &key, &value));
    EXPECT(MANYCORE_CONFLICT, ts_commit(me, TS_DURABLE, NULL));
    EXPECT(MANYCORE_NO_SESSION, ts_abort(me));
    EXPECT(MANYCORE_OK, ts_begin(me, TS_LINEARIZABLE));
    EXPECT(MANYCORE_OK, ts_map_put(me, map, &key, &value));
    EXPECT(MANYCORE_OK, ts_commit(me, TS_DURABLE, NULL));
    /* What does not fit into a record has not been. */
    EXPECT(MANYCORE_OK, ts_begin(me, TS_SNAPSHOT));
    memset(large, 1, 8000);
    value = 2;
    EXPECT(MANYCORE_OK, ts_map_put(me, map, &key, &value));
    for (i = 0; i < 4; i++)
        EXPECT(MANYCORE_OK, ts_alloc(me, large, 8000, &id));
    EXPECT(MANYCORE_TOO_LARGE, ts_commit(me, TS_DURABLE, NULL));
    EXPECT(MANYCORE_OK, ts_begin(me, TS_READ_LATEST));
    EXPECT(MANYCORE_OK, ts_map_get(me, map, &key, &value));
    EXPECT(1, value);
    EXPECT(MANYCORE_OK, ts_abort(me));
    free(large);
}

/* A child of fork changes no file of its parent's. */
static void forked(void)
{
    pid_t child;
    int status = -1;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        int key = 1;
        long value = 99;
        EXPECT(MANYCORE_POISONED, ts_sync(store));
        EXPECT(MANYCORE_POISONED, ts_checkpoint(store));
        EXPECT(MANYCORE_OK, ts_begin(me, TS_SNAPSHOT));
        EXPECT(MANYCORE_OK, ts_map_put(me, map, &key, &value));
        EXPECT(MANYCORE_POISONED, ts_commit(me, TS_DURABLE, NULL));
        EXPECT(1, strstr(ts_message(), "fork") != NULL);
        fflush(stdout);
        _exit(failed);
    }
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
}

static void remove_store(const char *directory)
{
    static const char *const names[] = {"store", "journal", "image.0", "image.1", "lock"};
    char path[256];
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

int main(void)
{
    char directory[] = "/tmp/durable-XXXXXX", copy[] = "/tmp/durable-copy-XXXXXX";
    ts_contents_t contents;
    EXPECT(1, mkdtemp(directory) != NULL && mkdtemp(copy) != NULL);
    opening(directory);
    sessions();
    maps();
    conflicts();
    forked();
    EXPECT(MANYCORE_OK, ts_backup(store, copy));
    EXPECT(MANYCORE_OK, ts_checkpoint(store));
    EXPECT(MANYCORE_OK, ts_unregister(me));
    EXPECT(MANYCORE_LOCKED, ts_verify(directory, NULL));
    EXPECT(MANYCORE_OK, ts_close(store));
    EXPECT(MANYCORE_OK, ts_verify(directory, &contents));
    EXPECT(1, contents.is_closed);
    EXPECT(1, contents.objects > 100);
    EXPECT(MANYCORE_OK, ts_probe(copy, &contents));
    EXPECT(0, contents.is_closed);
    remove_store(directory);
    remove_store(copy);
    return failed;
}
