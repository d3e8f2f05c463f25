/*
 * What programs for RLU and MV-RLU do beside the obvious, with nothing but "mvrlu.h": objects
 * before the begin, pointers that are stored without a session, data of threads wherever, walks
 * without RLU_DEREF, output in its order.
 */
#include "mvrlu.h"

#include "expect.h"

#include <stdlib.h>
#include <string.h>

typedef struct node {
    long value;
    struct node *next;
} node_t;

static node_t *head;

static node_t *new_node(long value, node_t *next)
{
    node_t *node = (node_t *)mvrlu_alloc(sizeof(node_t));
    node->value = value;
    node->next = next;
    return node;
}

/* Inserts behind the first node. */
static void insert(mvrlu_thread_struct_t *self, long value)
{
    node_t *first, *node;
restart:
    mvrlu_reader_lock(self);
    first = (node_t *)mvrlu_deref(self, head);
    if (!mvrlu_try_lock(self, &first)) {
        mvrlu_abort(self);
        goto restart;
    }
    node = new_node(value, NULL);
    mvrlu_assign_ptr(self, &node->next, first->next);
    mvrlu_assign_ptr(self, &first->next, node);
    EXPECT(1, mvrlu_cmp_ptrs(first, head));
    mvrlu_reader_unlock(self);
}

/* As the objects look by themselves. */
static int size(void)
{
    int n = 0;
    node_t *node;
    for (node = head; node != NULL; node = node->next)
        n++;
    return n;
}

static void *work(void *data)
{
    int i;
    for (i = 0; i < 1000; i++)
        insert((mvrlu_thread_struct_t *)data, i);
    mvrlu_thread_finish((mvrlu_thread_struct_t *)data);
    return NULL;
}

int main(void)
{
    rlu_thread_data_t *array = (rlu_thread_data_t *)malloc(2 * sizeof *array);
    mvrlu_thread_struct_t *self = mvrlu_thread_alloc();

    head = new_node(0, NULL);
    head->next = new_node(1, NULL);
    mvrlu_init();
    EXPECT(2, size());

    mvrlu_thread_init(self);
    insert(self, 2);
    mvrlu_flush_log(self);
    EXPECT(3, size());

    /* Not initialised, as from malloc. */
    memset(array, 0xa5, 2 * sizeof *array);
    RLU_THREAD_INIT(&array[0]);
    array[0].is_no_quiescence = 1;
    insert(&array[0], 3);
    EXPECT(4, size());
    insert(&array[0], 4);
    EXPECT(5, size());
    array[0].is_no_quiescence = 0;

    RLU_THREAD_INIT(&array[1]);
    run(work, &array[0]);
    run(work, &array[1]);
    mvrlu_thread_finish(self);
    EXPECT(2005, size());

    printf("before\n");
    mvrlu_print_stats();
    printf("after\n");
    mvrlu_thread_free(self);
    mvrlu_finish();
    free(array);
    return failed;
}
