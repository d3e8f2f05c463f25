/*
 * Every lock of the library around one counter, chosen by name.
 *
 *     cc locks.c -o locks $(pkg-config --cflags --libs manycore) -pthread && ./locks
 */
#include <manycore/lock.h>

#include <pthread.h>
#include <stdio.h>

#define THREADS 4
#define TURNS 2000

static manycore_mutex_t mutex;
static manycore_rwlock_t rwlock;
static long counter, twice;
static int torn;

static void *count(void *unused)
{
    int i;
    (void)unused;
    for (i = 0; i < TURNS; i++) {
        manycore_mutex_lock(&mutex);
        counter++;
        manycore_mutex_unlock(&mutex);
    }
    return NULL;
}

/* One of four times a writer of two numbers, which no reader may see apart. */
static void *read_or_write(void *unused)
{
    int i;
    (void)unused;
    for (i = 0; i < TURNS; i++) {
        if (i % 4 == 0) {
            manycore_rwlock_wrlock(&rwlock);
            counter++;
            twice += 2;
            manycore_rwlock_wrunlock(&rwlock);
        } else {
            int apart;
            manycore_rwlock_rdlock(&rwlock);
            apart = twice != 2 * counter;
            manycore_rwlock_rdunlock(&rwlock);
            if (apart)
                __atomic_store_n(&torn, 1, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

static long with_threads(void *(*work)(void *))
{
    pthread_t threads[THREADS];
    int i;
    counter = twice = 0;
    for (i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return -1;
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return counter;
}

int main(void)
{
    static const char *const rwlocks[] = {"phase-rw", "per-cpu-rw", "bravo"};
    static manycore_mutex_t usual = MANYCORE_MUTEX_INIT;
    const char *name;
    manycore_status_t status;
    size_t i;

    for (i = 0; (name = manycore_lock_name(i)) != NULL; i++) {
        status = manycore_mutex_init(&mutex, name);
        if (status != MANYCORE_OK) {
            fprintf(stderr, "%s: %s\n", name, manycore_strerror(status));
            return 1;
        }
        if (with_threads(count) != (long)THREADS * TURNS) {
            fprintf(stderr, "%s: %ld\n", name, counter);
            return 1;
        }
        manycore_mutex_destroy(&mutex);
        printf("%s ", name);
    }
    for (i = 0; i < sizeof rwlocks / sizeof *rwlocks; i++) {
        manycore_rwlock_init(&rwlock, rwlocks[i]);
        if (with_threads(read_or_write) != (long)THREADS * TURNS / 4 || torn) {
            fprintf(stderr, "%s: %ld\n", rwlocks[i], counter);
            return 1;
        }
        manycore_rwlock_destroy(&rwlock);
        printf("%s ", rwlocks[i]);
    }
    printf("\n");

    /* A mistake is an answer, not a hang. */
    manycore_mutex_lock(&usual);
    status = manycore_mutex_lock(&usual);
    printf("once more: %s\n", manycore_strerror(status));
    manycore_mutex_unlock(&usual);
    return status == MANYCORE_DEADLOCK ? 0 : 1;
}
