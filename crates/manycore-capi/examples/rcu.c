/*
 * Configuration that threads read all the time without waiting, and that one exchanges now and
 * then.
 *
 *     cc rcu.c -o rcu $(pkg-config --cflags --libs manycore) -pthread && ./rcu
 */
#include <manycore/rcu.h>

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define READERS 3
#define VERSIONS 2000

struct config {
    long number, twice;
    manycore_rcu_head_t head;
};

static manycore_rcu_t *rcu;
static struct config *current;
static int done, destroyed, torn;

static struct config *new_config(long number)
{
    struct config *config = (struct config *)malloc(sizeof *config);
    if (config == NULL)
        exit(1);
    config->number = number;
    config->twice = 2 * number;
    return config;
}

static void destroy(manycore_rcu_head_t *head)
{
    struct config *config = (struct config *)(void *)((char *)head - offsetof(struct config, head));
    config->number = -1; /* so that somebody who still has it would notice */
    free(config);
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
}

static void look(manycore_rcu_thread_t *self)
{
    const struct config *config;
    manycore_rcu_read_lock(self);
    config = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    if (config->twice != 2 * config->number || config->number < 0)
        __atomic_store_n(&torn, 1, __ATOMIC_RELAXED);
    manycore_rcu_read_unlock(self);
}

static void *read_in_sections(void *unused)
{
    manycore_rcu_thread_t *self;
    (void)unused;
    if (manycore_rcu_register(rcu, &self) != MANYCORE_OK)
        return NULL;
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        look(self);
    manycore_rcu_unregister(self);
    return NULL;
}

/* As a server does that has nothing between two requests. */
static void *read_between_quiescent_states(void *unused)
{
    manycore_rcu_thread_t *self;
    (void)unused;
    if (manycore_rcu_register_qsbr(rcu, &self) != MANYCORE_OK)
        return NULL;
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        look(self);
        manycore_rcu_quiescent(self);
    }
    return NULL; /* the registration ends with its thread */
}

int main(void)
{
    pthread_t readers[READERS];
    manycore_rcu_thread_t *self;
    manycore_status_t status;
    int i;

    manycore_rcu_create(NULL, &rcu);
    current = new_config(0);
    for (i = 0; i < READERS; i++)
        if (pthread_create(&readers[i], NULL, i ? read_in_sections : read_between_quiescent_states, NULL) != 0)
            return 1;

    manycore_rcu_register(rcu, &self);
    for (i = 1; i <= VERSIONS; i++) {
        struct config *old = __atomic_exchange_n(&current, new_config(i), __ATOMIC_ACQ_REL);
        manycore_rcu_call(self, &old->head, sizeof *old, destroy);
    }
    manycore_rcu_synchronize(self); /* no thread reads the one before the last any more */

    manycore_rcu_read_lock(self);
    status = manycore_rcu_synchronize(self);
    printf("in a section: %s\n", manycore_strerror(status));
    manycore_rcu_read_unlock(self);
    manycore_rcu_unregister(self);

    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    for (i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    if (manycore_rcu_destroy(rcu) != MANYCORE_OK)
        return 1;
    free(current);
    printf("destroyed %d of %d\n", destroyed, VERSIONS);
    return destroyed == VERSIONS && !torn && status == MANYCORE_DEADLOCK ? 0 : 1;
}
