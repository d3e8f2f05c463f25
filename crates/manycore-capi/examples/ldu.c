/*
 * A registry of open files that every open and close updates, and that hardly anybody reads:
 * deferred update, with the node in the object, as kernels have it.
 *
 *     cc ldu.c -o ldu $(pkg-config --cflags --libs manycore) -pthread && ./ldu
 */
#include <manycore/ldu.h>
#include <manycore/lock.h>

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define FILES 500

struct file {
    manycore_ldu_node_t node; /* all zero: not in the registry */
    struct file *prev, *next;
    int number;
};

static struct registry {
    manycore_mutex_t lock;
    manycore_ldu_t *log;
    struct file *first;
    int released;
} registry;

static struct file *file_of(manycore_ldu_node_t *node)
{
    return (struct file *)(void *)((char *)node - offsetof(struct file, node));
}

/* Runs with the lock held, on the thread that drains. */
static void apply(void *structure, int operation, manycore_ldu_node_t *node)
{
    struct registry *all = (struct registry *)structure;
    struct file *file = file_of(node);
    if (operation == MANYCORE_LDU_INSERT) {
        file->prev = NULL;
        file->next = all->first;
        if (file->next != NULL)
            file->next->prev = file;
        all->first = file;
    } else {
        *(file->prev != NULL ? &file->prev->next : &all->first) = file->next;
        if (file->next != NULL)
            file->next->prev = file->prev;
    }
}

static void release(void *structure, manycore_ldu_node_t *node)
{
    ((struct registry *)structure)->released++;
    free(file_of(node));
}

static const manycore_ldu_target_t target = {apply, release};

static int count_files(void)
{
    const struct file *file;
    int count = 0;
    manycore_mutex_lock(&registry.lock);
    manycore_ldu_drain(registry.log, &target, &registry, NULL);
    for (file = registry.first; file != NULL; file = file->next)
        count++;
    manycore_mutex_unlock(&registry.lock);
    return count;
}

/* Opens files, closes and opens them again, and closes all but every tenth for good. */
static void *work(void *kept)
{
    int i;
    for (i = 0; i < FILES; i++) {
        struct file *file = (struct file *)calloc(1, sizeof *file);
        if (file == NULL)
            exit(1);
        file->number = i;
        manycore_ldu_insert(registry.log, &file->node);
        manycore_ldu_remove(registry.log, &file->node);
        manycore_ldu_insert(registry.log, &file->node);
        if (i % 10 == 0) {
            ((struct file **)kept)[i / 10] = file;
        } else {
            manycore_ldu_remove(registry.log, &file->node);
            manycore_ldu_retire(registry.log, &file->node);
        }
        if (i % 100 == 0 && count_files() > THREADS * (FILES / 10 + 1))
            exit(1);
    }
    return NULL;
}

static int with(manycore_ldu_t *log)
{
    static struct file *kept[THREADS][FILES / 10];
    pthread_t threads[THREADS];
    int i, j, count, left;

    registry.log = log;
    registry.released = 0;
    for (i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, kept[i]) != 0)
            return 1;
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    count = count_files();
    for (i = 0; i < THREADS; i++) {
        for (j = 0; j < FILES / 10; j++) {
            manycore_ldu_remove(log, &kept[i][j]->node);
            manycore_ldu_retire(log, &kept[i][j]->node);
        }
    }
    left = count_files();
    printf("%d open, then %d; %d released\n", count, left, registry.released);
    manycore_ldu_destroy(log);
    return count != THREADS * FILES / 10 || left != 0 || registry.released != THREADS * FILES;
}

int main(void)
{
    manycore_ldu_node_t node = MANYCORE_LDU_NODE_INIT;
    manycore_ldu_table_t *table;
    manycore_ldu_t *log;
    int failed = 0;

    manycore_ldu_create(MANYCORE_LDU_GLOBAL, &log);
    failed |= with(log);
    manycore_ldu_create(MANYCORE_LDU_PER_CORE, &log);
    failed |= with(log);

    manycore_ldu_table_create(8, &table);
    manycore_ldu_create_in(table, &log);
    manycore_ldu_table_destroy(table); /* the log keeps it */
    failed |= with(log);

    manycore_ldu_create(MANYCORE_LDU_GLOBAL, &log);
    failed |= manycore_ldu_insert(log, &node) != MANYCORE_OK;
    failed |= manycore_ldu_insert(log, &node) != MANYCORE_REPEATED;
    /* the two cancel, but their entry is in the log */
    failed |= manycore_ldu_remove(log, &node) != MANYCORE_OK;
    manycore_ldu_drain(log, &target, &registry, NULL);
    manycore_ldu_destroy(log);
    return failed;
}
