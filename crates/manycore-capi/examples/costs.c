/*
 * What the calls cost a thread that meets no other: the shortest of several rounds, in nanoseconds.
 *
 *     cc -O2 costs.c -o costs $(pkg-config --cflags --libs manycore) -pthread && ./costs
 */
#include <manycore/lock.h>
#include <manycore/rcu.h>
#include <manycore/rlu.h>

#include <stdio.h>
#include <time.h>

#define ROUNDS 9
#define CALLS 2000

static rlu_thread_data_t *self;
static manycore_rcu_thread_t *reader;
static manycore_mutex_t mutex = MANYCORE_MUTEX_INIT;
static long *object;
static volatile long seen;

static void nothing(void)
{
}

static void session(void)
{
    RLU_READER_LOCK(self);
    RLU_READER_UNLOCK(self);
}

static void deref(void)
{
    seen += *(long *)RLU_DEREF(self, object);
}

static void transaction(void)
{
    long *copy = object;
    RLU_READER_LOCK(self);
    if (RLU_TRY_LOCK(self, &copy)) {
        ++*copy;
        RLU_READER_UNLOCK(self);
    } else {
        RLU_ABORT(self);
    }
}

static void section(void)
{
    manycore_rcu_read_lock(reader);
    manycore_rcu_read_unlock(reader);
}

static void locked(void)
{
    manycore_mutex_lock(&mutex);
    manycore_mutex_unlock(&mutex);
}

static double nanoseconds(void (*call)(void))
{
    double shortest = 0;
    int round, i;
    for (round = 0; round < ROUNDS; round++) {
        struct timespec start, end;
        double each;
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (i = 0; i < CALLS; i++)
            call();
        clock_gettime(CLOCK_MONOTONIC, &end);
        each = ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / CALLS;
        if (round == 0 || each < shortest)
            shortest = each;
    }
    return shortest;
}

static void report(const char *name, void (*volatile call)(void))
{
    double cost = nanoseconds(call) - nanoseconds(nothing);
    printf("%-44s %7.1f\n", name, cost);
}

int main(void)
{
    manycore_rcu_t *rcu;

    RLU_INIT();
    self = RLU_THREAD_ALLOC();
    RLU_THREAD_INIT(self);
    object = (long *)RLU_ALLOC(sizeof *object);
    if (manycore_rcu_create(NULL, &rcu) != MANYCORE_OK || manycore_rcu_register(rcu, &reader) != MANYCORE_OK)
        return 1;

    report("RLU_READER_LOCK, RLU_READER_UNLOCK", session);
    RLU_READER_LOCK(self);
    report("RLU_DEREF of an object without versions", deref);
    RLU_READER_UNLOCK(self);
    report("a transaction that changes an object", transaction);
    report("manycore_rcu_read_lock, ..._unlock", section);
    report("manycore_mutex_lock, ..._unlock", locked);

    RLU_THREAD_FREE(self);
    manycore_rcu_unregister(reader);
    manycore_rcu_destroy(rcu);
    return RLU_FINISH() == MANYCORE_OK ? 0 : 1;
}
