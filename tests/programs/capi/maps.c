/* What a map says to mistakes; threads that end in a transaction; calls in callbacks. */
#include "expect.h"

#include <manycore/map.h>

#include <string.h>

static manycore_map_t *map;

static int nested(void *context, const void *key, size_t key_size, const void *value, size_t size)
{
    (void)context, (void)value, (void)size;
    EXPECT(MANYCORE_BUSY, manycore_map_set(map, key, key_size, "2", 1));
    EXPECT(MANYCORE_BUSY, manycore_map_get(map, key, key_size, NULL, NULL));
    EXPECT(MANYCORE_BUSY, manycore_map_begin(map));
    EXPECT(MANYCORE_BUSY, manycore_map_destroy(map));
    return 1;
}

static int decide(void *context, size_t index, const void *value, size_t size, manycore_map_bytes_t *new_value)
{
    (void)index, (void)value, (void)size;
    new_value->data = "other";
    new_value->size = 5;
    return *(int *)context;
}

static int first_byte(void *context, const void *key, size_t key_size, const void *value, size_t size)
{
    (void)key, (void)key_size;
    *(char *)context = size > 0 ? *(const char *)value : 0;
    return 1;
}

static char of(const char *key)
{
    char found = '?';
    manycore_map_get(map, key, strlen(key), first_byte, &found);
    return found;
}

static void *end_in_transaction(void *data)
{
    (void)data;
    EXPECT(MANYCORE_OK, manycore_map_begin(map));
    EXPECT(MANYCORE_ALREADY, manycore_map_begin(map));
    EXPECT(MANYCORE_ALREADY, manycore_map_keep_others_out(map));
    EXPECT(MANYCORE_ALREADY, manycore_map_let_others_in(map));
    EXPECT(MANYCORE_OK, manycore_map_set(map, "key", 3, "lost", 4));
    EXPECT('l', of("key"));
    pthread_exit(NULL);
}

static void *end_alone(void *data)
{
    (void)data;
    EXPECT(MANYCORE_OK, manycore_map_keep_others_out(map));
    return NULL;
}

static void *beside(void *data)
{
    (void)data;
    EXPECT('v', of("key"));
    EXPECT(MANYCORE_BUSY, manycore_map_try_begin(map));
    EXPECT(MANYCORE_NO_SESSION, manycore_map_commit(map));
    return NULL;
}

static void arguments(void)
{
    manycore_map_t *none = NULL;
    manycore_map_bytes_t keys[2] = {{"key", 3}, {NULL, 4}};
    int put = MANYCORE_MAP_PUT, wrong = 7;
    EXPECT(MANYCORE_NULL, manycore_map_get(none, "key", 3, NULL, NULL));
    EXPECT(MANYCORE_NULL, manycore_map_set(none, "key", 3, "", 0));
    EXPECT(MANYCORE_NULL, manycore_map_begin(none));
    EXPECT(MANYCORE_NULL, manycore_map_destroy(none));
    EXPECT(0, manycore_map_count(none));
    EXPECT(0, manycore_map_bytes(none));
    EXPECT(MANYCORE_NULL, manycore_map_set(map, NULL, 3, "", 0));
    EXPECT(MANYCORE_NULL, manycore_map_set(map, "key", 3, NULL, 1));
    EXPECT(MANYCORE_INVALID, manycore_map_set(map, "key", (size_t)-1, "", 0));
    EXPECT(MANYCORE_NOT_FOUND, manycore_map_get(map, "none", 4, NULL, NULL));
    EXPECT(MANYCORE_NOT_FOUND, manycore_map_remove(map, "none", 4));
    EXPECT(MANYCORE_NULL, manycore_map_change(map, "key", 3, NULL, NULL));
    EXPECT(MANYCORE_INVALID, manycore_map_change(map, "key", 3, decide, &wrong));
    EXPECT(MANYCORE_NULL, manycore_map_change_all(map, NULL, 1, decide, &put));
    EXPECT(MANYCORE_NULL, manycore_map_change_all(map, keys, 2, decide, &put));
    EXPECT(MANYCORE_OK, manycore_map_change_all(map, NULL, 0, decide, &put));
    EXPECT(MANYCORE_NULL, manycore_map_for_each(map, NULL, NULL));
    EXPECT(MANYCORE_INVALID, manycore_map_for_each_of(map, 2, 2, first_byte, NULL));
    EXPECT(MANYCORE_INVALID, manycore_map_next(map, 3, "key", 3, NULL, NULL));
    EXPECT(MANYCORE_NOT_FOUND, manycore_map_next(map, MANYCORE_MAP_AFTER, "key", 3, NULL, NULL));
    EXPECT(MANYCORE_NO_SESSION, manycore_map_commit(map));
    EXPECT(MANYCORE_NO_SESSION, manycore_map_abort(map));
    EXPECT(MANYCORE_NO_SESSION, manycore_map_let_others_in(map));
    EXPECT('v', of("key"));
}

static void too_large(void)
{
    manycore_map_config_t config = {sizeof config, 100000, 1 << 19};
    manycore_map_t *small = NULL;
    manycore_status_t status = MANYCORE_OK;
    long key;
    EXPECT(MANYCORE_NULL, manycore_map_create(&config, NULL));
    EXPECT(MANYCORE_OK, manycore_map_create(&config, &small));
    EXPECT(MANYCORE_OK, manycore_map_begin(small));
    for (key = 0; key < 100000 && status == MANYCORE_OK; key++)
        status = manycore_map_set(small, &key, sizeof key, "", 0);
    EXPECT(MANYCORE_TOO_LARGE, status);
    EXPECT(MANYCORE_FAILED, manycore_map_set(small, "key", 3, "", 0));
    EXPECT(MANYCORE_FAILED, manycore_map_commit(small));
    EXPECT(0, manycore_map_count(small));
    EXPECT(MANYCORE_OK, manycore_map_set(small, "key", 3, "", 0));
    EXPECT(MANYCORE_OK, manycore_map_destroy(small));
    config.size = 0;
    EXPECT(MANYCORE_INVALID, manycore_map_create(&config, &small));
}

int main(void)
{
    int remove = MANYCORE_MAP_REMOVE, put = MANYCORE_MAP_PUT;
    EXPECT(MANYCORE_OK, manycore_map_create(NULL, &map));
    EXPECT(MANYCORE_OK, manycore_map_set(map, "key", 3, "value", 5));
    arguments();
    EXPECT(MANYCORE_OK, manycore_map_get(map, "key", 3, nested, NULL));
    EXPECT(MANYCORE_OK, manycore_map_for_each(map, nested, NULL));
    EXPECT(MANYCORE_OK, manycore_map_next(map, MANYCORE_MAP_FIRST, NULL, 0, nested, NULL));
    run(end_in_transaction, NULL);
    EXPECT('v', of("key"));
    run(end_alone, NULL);
    EXPECT(MANYCORE_OK, manycore_map_try_begin(map));
    EXPECT(MANYCORE_OK, manycore_map_change(map, "key", 3, decide, &put));
    EXPECT('o', of("key"));
    EXPECT(MANYCORE_BUSY, manycore_map_destroy(map));
    run(beside, NULL);
    EXPECT(MANYCORE_OK, manycore_map_abort(map));
    EXPECT(MANYCORE_OK, manycore_map_change(map, "key", 3, decide, &remove));
    EXPECT(0, manycore_map_count(map));
    EXPECT(MANYCORE_OK, manycore_map_clear(map));
    EXPECT(MANYCORE_OK, manycore_map_destroy(map));
    too_large();
    return failed;
}
