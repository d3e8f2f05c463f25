/* Destructors that use the library by the very registration for which they run: at the end of
 * sections, of quiescent states, of threads and of domains. They may read and add; what ends the
 * registration or waits for it is answered by a status. */
#include "expect.h"

#include <manycore/rcu.h>

#include <stdlib.h>

enum { ROUNDS = 100, MANY = 20 };

/* Where the calling thread is, for destructors. */
static __thread manycore_rcu_thread_t *here;
static __thread int ends;

static manycore_rcu_t *rcu;
static int added, destroyed, nested, at_ends, with_domain, protected_by[2];

static void count(int *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static int counted(const int *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void destroy(manycore_rcu_head_t *head)
{
    count(&destroyed);
    free(head);
}

static void add(void (*by)(manycore_rcu_head_t *))
{
    manycore_rcu_head_t *head = (manycore_rcu_head_t *)malloc(sizeof *head);
    count(&added);
    EXPECT(MANYCORE_OK, manycore_rcu_call(here, head, sizeof *head, by));
}

static void leave(void)
{
    EXPECT(MANYCORE_OK, manycore_rcu_unregister(here));
    here = NULL;
}

/* ---- a section of a destructor protects ---- */

enum { PROTECTED = 5 };

/* At its end it says so. */
struct guarded {
    manycore_rcu_head_t head;
    int *gone;
};

static void destroy_guarded(manycore_rcu_head_t *head)
{
    __atomic_store_n(((struct guarded *)(void *)head)->gone, 1, __ATOMIC_RELAXED);
    destroy(head);
}

static void *other_thread(void *gone)
{
    struct guarded *guarded = (struct guarded *)malloc(sizeof *guarded);
    int i;
    EXPECT(MANYCORE_OK, manycore_rcu_register(rcu, &here));
    guarded->gone = (int *)gone;
    count(&added);
    EXPECT(MANYCORE_OK, manycore_rcu_call(here, &guarded->head, sizeof *guarded, destroy_guarded));
    for (i = 0; i < ROUNDS; i++)
        add(destroy);
    leave();
    return NULL;
}

static void protects(void)
{
    /* In the life of threads, and at their ends. */
    static int gone[2][PROTECTED];
    if (protected_by[ends] < PROTECTED) {
        int *mine = &gone[ends][protected_by[ends]++];
        run(other_thread, mine);
        EXPECT(0, __atomic_load_n(mine, __ATOMIC_RELAXED));
    }
}

/* ---- what a destructor may do, and what it is told ---- */

static void another_registration(void)
{
    manycore_rcu_thread_t *other, *before = here;
    int i;
    EXPECT(MANYCORE_OK, manycore_rcu_register_qsbr(rcu, &other));
    here = other;
    for (i = 0; i < MANY; i++)
        add(destroy);
    manycore_rcu_read_lock(other);
    EXPECT(MANYCORE_BUSY, manycore_rcu_quiescent(other));
    manycore_rcu_read_unlock(other);
    EXPECT(MANYCORE_OK, manycore_rcu_quiescent(other));
    EXPECT(MANYCORE_OK, manycore_rcu_offline(other));
    EXPECT(MANYCORE_OK, manycore_rcu_online(other));
    here = before;
    EXPECT(MANYCORE_OK, manycore_rcu_unregister(other));
}

/* At the end of the domain, when no thread takes part. */
static void destroy_with_domain(manycore_rcu_head_t *head)
{
    manycore_rcu_thread_t *self;
    EXPECT(MANYCORE_BUSY, manycore_rcu_destroy(rcu));
    EXPECT(MANYCORE_INVALID, manycore_rcu_register(rcu, &self));
    EXPECT(MANYCORE_INVALID, manycore_rcu_register_qsbr(rcu, &self));
    count(&with_domain);
    destroy(head);
}

static void destroy_and_use(manycore_rcu_head_t *head)
{
    static __thread int depth;
    if (here == NULL) {
        destroy_with_domain(head);
        return;
    }
    manycore_rcu_read_lock(here);
    manycore_rcu_read_lock(here);
    add(destroy);
    EXPECT(MANYCORE_DEADLOCK, manycore_rcu_synchronize(here));
    EXPECT(MANYCORE_BUSY, manycore_rcu_unregister(here));
    if (depth++ == 0)
        protects();
    manycore_rcu_read_unlock(here);
    manycore_rcu_read_unlock(here);
    add(destroy);
    EXPECT(MANYCORE_DEADLOCK, manycore_rcu_synchronize(here));
    EXPECT(MANYCORE_BUSY, manycore_rcu_quiescent(here));
    EXPECT(MANYCORE_BUSY, manycore_rcu_offline(here));
    EXPECT(MANYCORE_BUSY, manycore_rcu_online(here));
    EXPECT(MANYCORE_BUSY, manycore_rcu_unregister(here));
    EXPECT(MANYCORE_BUSY, manycore_rcu_destroy(rcu));
    if (!ends && counted(&nested) % MANY == 0)
        another_registration();
    count(&nested);
    if (ends)
        count(&at_ends);
    depth--;
    destroy(head);
}

static void add_in_section(int how_many, void (*by)(manycore_rcu_head_t *))
{
    int i;
    manycore_rcu_read_lock(here);
    manycore_rcu_read_lock(here);
    for (i = 0; i < how_many; i++)
        add(by);
    manycore_rcu_read_unlock(here);
    manycore_rcu_read_unlock(here);
}

static void sections(void)
{
    int i;
    EXPECT(MANYCORE_OK, manycore_rcu_register(rcu, &here));
    for (i = 0; i < ROUNDS; i++) {
        add_in_section(MANY, destroy_and_use);
        add(destroy_and_use);
        if (i % MANY == 0)
            EXPECT(MANYCORE_OK, manycore_rcu_synchronize(here));
    }
    leave();
}

static void quiescent_states(void)
{
    int i, before = counted(&nested);
    EXPECT(MANYCORE_OK, manycore_rcu_register_qsbr(rcu, &here));
    for (i = 0; i < ROUNDS; i++) {
        int k;
        manycore_rcu_read_lock(here);
        manycore_rcu_read_lock(here);
        for (k = 0; k < MANY; k++)
            add(destroy_and_use);
        EXPECT(MANYCORE_BUSY, manycore_rcu_quiescent(here));
        manycore_rcu_read_unlock(here);
        EXPECT(MANYCORE_BUSY, manycore_rcu_quiescent(here));
        manycore_rcu_read_unlock(here);
        EXPECT(MANYCORE_OK, manycore_rcu_quiescent(here));
    }
    EXPECT(1, counted(&nested) > before);
    before = counted(&nested);
    for (i = 0; i < MANY; i++)
        add(destroy_and_use);
    EXPECT(MANYCORE_OK, manycore_rcu_synchronize(here));
    EXPECT(1, counted(&nested) > before);
    leave();
}

/* Ends in a section, with another registration, when much of what it has added is due to be
 * destroyed. */
static void *end_in_section(void *unused)
{
    manycore_rcu_thread_t *other;
    int i, before = counted(&nested);
    EXPECT(MANYCORE_OK, manycore_rcu_register(rcu, &other));
    EXPECT(MANYCORE_OK, manycore_rcu_register(rcu, &here));
    manycore_rcu_read_lock(other);
    for (i = 0; i < ROUNDS / 2; i++)
        add_in_section(MANY, destroy_and_use);
    manycore_rcu_read_unlock(other);
    while (counted(&nested) == before)
        add_in_section(MANY, destroy);
    manycore_rcu_read_lock(here);
    manycore_rcu_read_lock(here);
    for (i = 0; i < MANY; i++)
        add(destroy);
    ends = 1;
    return unused;
}

/* ---- the end of a domain ---- */

static void last(void)
{
    int i;
    EXPECT(MANYCORE_OK, manycore_rcu_register(rcu, &here));
    for (i = 0; i < MANY; i++)
        add(destroy_and_use);
    leave();
    EXPECT(MANYCORE_OK, manycore_rcu_destroy(rcu));
}

int main(void)
{
    int i;
    EXPECT(MANYCORE_OK, manycore_rcu_create(NULL, &rcu));
    sections();
    quiescent_states();
    /* What is due then is not defined. */
    for (i = 0; i < ROUNDS && counted(&at_ends) == 0; i++)
        run(end_in_section, NULL);
    EXPECT(1, counted(&at_ends) > 0);
    last();
    EXPECT(1, with_domain > 0);
    EXPECT(added, destroyed);
    EXPECT(PROTECTED, protected_by[0]);
    EXPECT(1, protected_by[1] > 0);
    return failed;
}
