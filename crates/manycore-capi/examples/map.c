/*
 * Stock of a shop: threads sell and buy in, and one looks at all of it. What is sold and what was
 * earned changes together.
 *
 *     cc map.c -o map $(pkg-config --cflags --libs manycore) -pthread && ./map
 */
#include <manycore/map.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define ROUNDS 2000
#define ARTICLES 20

static manycore_map_t *shop;

static long number(const void *value, size_t size)
{
    char text[32] = {0};
    if (value == NULL || size >= sizeof text)
        return 0;
    memcpy(text, value, size);
    return strtol(text, NULL, 10);
}

/* One article less, and its price more in the till: in the order of the keys that are given. */
struct sale {
    int is_possible;
    char text[32];
};

static int sell(void *context, size_t index, const void *value, size_t size, manycore_map_bytes_t *new_value)
{
    struct sale *sale = (struct sale *)context;
    long now = number(value, size);
    if (index == 0)
        sale->is_possible = now > 0;
    if (!sale->is_possible)
        return MANYCORE_MAP_KEEP;
    new_value->data = sale->text;
    new_value->size = (size_t)snprintf(sale->text, sizeof sale->text, "%ld", index == 0 ? now - 1 : now + 1);
    return MANYCORE_MAP_PUT;
}

static int add_up(void *context, const void *key, size_t key_size, const void *value, size_t size)
{
    (void)key, (void)key_size;
    *(long *)context += number(value, size);
    return 1;
}

static long worth(void)
{
    long sum = 0;
    manycore_map_for_each(shop, add_up, &sum);
    return sum;
}

static void *assistant(void *data)
{
    unsigned seed = *(unsigned *)data;
    int round;
    for (round = 0; round < ROUNDS; round++) {
        char article[16];
        struct sale sale;
        manycore_map_bytes_t keys[2];
        keys[0].data = article;
        keys[0].size = (size_t)snprintf(article, sizeof article, "article %u", (seed = seed * 1103515245 + 12345) / 65536 % ARTICLES);
        keys[1].data = "till";
        keys[1].size = 4;
        if (manycore_map_change_all(shop, keys, 2, sell, &sale) != MANYCORE_OK)
            abort();
        if (round % 100 == 0 && worth() != 1000L * ARTICLES)
            abort(); /* an article was sold, and not paid for */
    }
    return NULL;
}

static int print(void *context, const void *key, size_t key_size, const void *value, size_t size)
{
    (void)context;
    printf("%.*s: %.*s\n", (int)key_size, (const char *)key, (int)size, (const char *)value);
    return 1;
}

int main(void)
{
    pthread_t threads[THREADS];
    unsigned seeds[THREADS], i;
    char article[16];
    long sum = 0;
    if (manycore_map_create(NULL, &shop) != MANYCORE_OK)
        return 1;
    for (i = 0; i < ARTICLES; i++)
        manycore_map_set(shop, article, (size_t)snprintf(article, sizeof article, "article %u", i), "1000", 4);
    for (i = 0; i < THREADS; i++) {
        seeds[i] = i;
        if (pthread_create(&threads[i], NULL, assistant, &seeds[i]) != 0)
            return 1;
    }
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    /* All articles go at once; another thread would see the shop with all of them, or none. */
    manycore_map_begin(shop);
    for (i = 0; i < ARTICLES; i++)
        manycore_map_remove(shop, article, (size_t)snprintf(article, sizeof article, "article %u", i));
    if (manycore_map_commit(shop) != MANYCORE_OK || manycore_map_count(shop) != 1)
        return 1;
    manycore_map_get(shop, "till", 4, print, NULL);
    manycore_map_get(shop, "till", 4, add_up, &sum);
    manycore_map_destroy(shop);
    return sum == (long)THREADS * ROUNDS ? 0 : 1;
}
