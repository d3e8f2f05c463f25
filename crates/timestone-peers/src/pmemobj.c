/* Numbers by numbers in a pool of libpmemobj: a table of lists, under one lock of readers and
   writers, since its transactions do not isolate. */
#include <libpmemobj.h>

#include <stddef.h>
#include <stdint.h>

/* For 10,000 keys. */
#define BUCKETS 16384
#define POOL_BYTES ((size_t)64 << 20)

POBJ_LAYOUT_BEGIN(numbers);
POBJ_LAYOUT_ROOT(numbers, struct table);
POBJ_LAYOUT_TOID(numbers, struct node);
POBJ_LAYOUT_END(numbers);

struct node {
    uint64_t key;
    uint64_t value;
    TOID(struct node) next;
};

struct table {
    PMEMrwlock lock;
    TOID(struct node) buckets[BUCKETS];
};

static struct table *table_of(PMEMobjpool *pool)
{
    TOID(struct table) root = POBJ_ROOT(pool, struct table);
    return TOID_IS_NULL(root) ? NULL : D_RW(root);
}

/* The link to the key's node, or to nothing. */
static TOID(struct node) *find(struct table *table, uint64_t key)
{
    /* The upper bits of a product with 2^64 divided by the golden ratio. */
    TOID(struct node) *link = &table->buckets[key * UINT64_C(0x9e3779b97f4a7c15) >> 50];
    while (!TOID_IS_NULL(*link) && D_RO(*link)->key != key)
        link = &D_RW(*link)->next;
    return link;
}

PMEMobjpool *numbers_create(const char *path)
{
    return pmemobj_create(path, POBJ_LAYOUT_NAME(numbers), POOL_BYTES, 0600);
}

PMEMobjpool *numbers_open(const char *path)
{
    return pmemobj_open(path, POBJ_LAYOUT_NAME(numbers));
}

void numbers_close(PMEMobjpool *pool)
{
    pmemobj_close(pool);
}

const char *numbers_error(void)
{
    return pmemobj_errormsg();
}

/* 1 if the key is there, 0 if it is not, -1 after an error. */
int numbers_get(PMEMobjpool *pool, uint64_t key, uint64_t *value)
{
    struct table *table = table_of(pool);
    TOID(struct node) *link;
    int is_there;
    if (table == NULL || pmemobj_rwlock_rdlock(pool, &table->lock) != 0)
        return -1;
    link = find(table, key);
    is_there = !TOID_IS_NULL(*link);
    if (is_there)
        *value = D_RO(*link)->value;
    return pmemobj_rwlock_unlock(pool, &table->lock) == 0 ? is_there : -1;
}

/* 0, or -1 after an error: then nothing has changed. */
int numbers_put(PMEMobjpool *pool, const uint64_t *keys, size_t count, uint64_t value)
{
    struct table *table = table_of(pool);
    /* TX_BEGIN is a setjmp. */
    volatile int status = -1;
    if (table == NULL)
        return -1;
    TX_BEGIN_PARAM(pool, TX_PARAM_RWLOCK, &table->lock, TX_PARAM_NONE) {
        for (size_t at = 0; at < count; at++) {
            TOID(struct node) *link = find(table, keys[at]);
            if (TOID_IS_NULL(*link)) {
                TOID(struct node) made = TX_ZNEW(struct node);
                D_RW(made)->key = keys[at];
                D_RW(made)->value = value;
                TX_ADD_DIRECT(link);
                *link = made;
            } else {
                uint64_t *old = &D_RW(*link)->value;
                TX_ADD_DIRECT(old);
                *old = value;
            }
        }
    } TX_ONCOMMIT {
        status = 0;
    } TX_END
    return status;
}
