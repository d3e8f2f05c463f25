/*
 * A sorted list in the form of the papers on RLU and MV-RLU: written to their macros, and to
 * nothing of this library.
 *
 *     cc list.c -o list $(pkg-config --cflags --libs manycore-rlu) -pthread && ./list [threads] [operations of each]
 *
 * Threads insert, remove and look for numbers; in the end the list has to hold what their results
 * say.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "rlu.h"

#define RANGE 64
#define SMALLEST (-1)
#define LARGEST RANGE

typedef struct node {
    int value;
    struct node *next;
} node_t;

typedef struct list {
    node_t *head;
} list_t;

typedef struct worker {
    pthread_t thread;
    rlu_thread_data_t *self;
    list_t *list;
    int operations;
    unsigned seed;
    int balance; /* insertions less removals that had a result */
} worker_t;

static node_t *new_node(int value, node_t *next)
{
    node_t *node = (node_t *)RLU_ALLOC(sizeof(node_t));
    if (node == NULL) {
        printf("out of memory\n");
        exit(1);
    }
    node->value = value;
    node->next = next;
    return node;
}

/* The first node whose value is not less, and the one before it, as this session sees them. */
static void find(rlu_thread_data_t *self, list_t *list, int value, node_t **p_prev, node_t **p_next)
{
    node_t *prev = (node_t *)RLU_DEREF(self, list->head);
    node_t *next = (node_t *)RLU_DEREF(self, prev->next);
    while (next->value < value) {
        prev = next;
        next = (node_t *)RLU_DEREF(self, prev->next);
    }
    *p_prev = prev;
    *p_next = next;
}

static int list_contains(rlu_thread_data_t *self, list_t *list, int value)
{
    node_t *prev, *next;
    int found;

    RLU_READER_LOCK(self);
    find(self, list, value, &prev, &next);
    found = next->value == value;
    RLU_READER_UNLOCK(self);
    return found;
}

static int list_add(rlu_thread_data_t *self, list_t *list, int value)
{
    node_t *prev, *next, *node;
    int is_new;

restart:
    RLU_READER_LOCK(self);
    find(self, list, value, &prev, &next);
    is_new = next->value != value;
    if (is_new) {
        if (!RLU_TRY_LOCK(self, &prev) || !RLU_TRY_LOCK(self, &next)) {
            RLU_ABORT(self);
            goto restart;
        }
        node = new_node(value, NULL);
        RLU_ASSIGN_PTR(self, &node->next, next);
        RLU_ASSIGN_PTR(self, &prev->next, node);
    }
    RLU_READER_UNLOCK(self);
    return is_new;
}

static int list_remove(rlu_thread_data_t *self, list_t *list, int value)
{
    node_t *prev, *next, *after;
    int is_there;

restart:
    RLU_READER_LOCK(self);
    find(self, list, value, &prev, &next);
    is_there = next->value == value;
    if (is_there) {
        after = (node_t *)RLU_DEREF(self, next->next);
        if (!RLU_TRY_LOCK(self, &prev) || !RLU_TRY_LOCK(self, &next)) {
            RLU_ABORT(self);
            goto restart;
        }
        RLU_ASSIGN_PTR(self, &prev->next, after);
        RLU_FREE(self, next);
    }
    RLU_READER_UNLOCK(self);
    return is_there;
}

static void *work(void *data)
{
    worker_t *me = (worker_t *)data;
    int i;

    RLU_THREAD_INIT(me->self);
    for (i = 0; i < me->operations; i++) {
        int value = rand_r(&me->seed) % RANGE;
        switch (rand_r(&me->seed) % 4) {
        case 0:
            me->balance += list_add(me->self, me->list, value);
            break;
        case 1:
            me->balance -= list_remove(me->self, me->list, value);
            break;
        default:
            list_contains(me->self, me->list, value);
        }
    }
    RLU_THREAD_FINISH(me->self);
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 4;
    int operations = argc > 2 ? atoi(argv[2]) : 5000;
    int i, expected = 0, size = 0;
    worker_t *workers;
    list_t list;
    node_t *node;

    RLU_INIT(RLU_TYPE_FINE_GRAINED, 1);
    list.head = new_node(SMALLEST, new_node(LARGEST, NULL));

    workers = (worker_t *)calloc((size_t)threads, sizeof(worker_t));
    for (i = 0; i < threads; i++) {
        workers[i].self = RLU_THREAD_ALLOC();
        workers[i].list = &list;
        workers[i].operations = operations;
        workers[i].seed = (unsigned)i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 1;
    }
    for (i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        expected += workers[i].balance;
        RLU_THREAD_FREE(workers[i].self);
    }
    free(workers);

    /* All threads have finished: the list is as it looks. */
    for (node = list.head->next; node->next != NULL; node = node->next)
        size++;
    printf("size %d, expected %d\n", size, expected);
    RLU_PRINT_STATS();
    RLU_FINISH();
    return size == expected ? 0 : 1;
}
