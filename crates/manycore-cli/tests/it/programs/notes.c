/* A program for each thing that would help, and for its absence.
 *
 *     notes MODE        what to show; see `main`
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 400, MOVES = 1500, HOLD = 100, REST = 6000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static pthread_barrier_t together;
/* One right behind the other, and each in a line of its own. */
static struct { pthread_mutex_t one, other; } close_by __attribute__((aligned(64)));
static struct { pthread_mutex_t one __attribute__((aligned(64))), other __attribute__((aligned(64))); } apart;
/* The percentage of acquisitions that are for reading. */
static int reads;
static volatile long work;
static int own_word;

/* Held for most of the run. */
/* Often enough that one hold in 64 is enough to say something. */
static void *hold_long(void *unused)
{
    for (int round = 0; round < 3 * ROUNDS; round++) {
        pthread_mutex_lock(&mutex);
        usleep(300);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

/* Wanted by all at once, and held for a small part of the run: a tenth, so that a machine that
   wakes threads late does not make it half. */
static void *want_together(void *unused)
{
    for (int round = 0; round < 3 * ROUNDS; round++) {
        pthread_barrier_wait(&together);
        pthread_mutex_lock(&mutex);
        usleep(HOLD);
        pthread_mutex_unlock(&mutex);
        usleep(REST);
    }
    return unused;
}

/* Never wanted by two at once. */
static void *take_turns(void *number)
{
    for (int turn = 0; turn < THREADS * 20; turn++) {
        pthread_barrier_wait(&together);
        if (turn % THREADS == (long)number) {
            pthread_mutex_lock(&mutex);
            usleep(50);
            pthread_mutex_unlock(&mutex);
        }
    }
    return NULL;
}

static void *read_and_write(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&together);
        if (round % 100 < reads)
            pthread_rwlock_rdlock(&rwlock);
        else
            pthread_rwlock_wrlock(&rwlock);
        usleep(HOLD);
        pthread_rwlock_unlock(&rwlock);
        usleep(REST);
    }
    return unused;
}

/* Who has it sleeps, and the others spin. */
static void *spin(void *unused)
{
    for (int round = 0; round < 300; round++) {
        pthread_spin_lock(&spinlock);
        work++;
        usleep(300);
        pthread_spin_unlock(&spinlock);
        usleep(300);
    }
    return unused;
}

__attribute__((noinline)) void spin_until_free(void)
{
    while (__atomic_exchange_n(&own_word, 1, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
}

/* A lock of the program's own, and one that is not wanted by two at once: so the program is seen to
   have threads. */
static void *spin_itself(void *unused)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    for (int round = 0; round < 300; round++) {
        spin_until_free();
        work++;
        usleep(300);
        __atomic_store_n(&own_word, 0, __ATOMIC_RELEASE);
        usleep(300);
    }
    return unused;
}

/* Two locks, on one CPU and then on another. */
static void wander(pthread_mutex_t *one, pthread_mutex_t *other)
{
    int cpus[2], found = 0;
    cpu_set_t allowed, here;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            cpus[found++] = cpu;
    if (found < 2)
        exit(77);
    for (int move = 0; move < MOVES; move++) {
        CPU_ZERO(&here);
        CPU_SET(cpus[move % 2], &here);
        sched_setaffinity(0, sizeof(here), &here);
        pthread_mutex_lock(one);
        pthread_mutex_unlock(one);
        pthread_mutex_lock(other);
        pthread_mutex_unlock(other);
    }
}

static void run(int threads, void *(*body)(void *))
{
    pthread_t all[256];
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (long at = 0; at < threads; at++)
        pthread_create(&all[at], NULL, body, (void *)at);
    for (int at = 0; at < threads; at++)
        pthread_join(all[at], NULL);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int many = cpus < 60 ? (int)cpus * 3 : 180;
    pthread_spin_init(&spinlock, 0);
    if (!strcmp(mode, "long"))
        run(THREADS, hold_long);
    else if (!strcmp(mode, "hot"))
        run(THREADS, want_together);
    else if (!strcmp(mode, "calm"))
        run(THREADS, take_turns);
    else if (!strncmp(mode, "reads=", 6)) {
        reads = atoi(mode + 6);
        run(THREADS, read_and_write);
    } else if (!strcmp(mode, "spin-many"))
        run(many, spin);
    else if (!strcmp(mode, "spin-one"))
        run(1, spin);
    else if (!strcmp(mode, "spin-itself-many"))
        run(many, spin_itself);
    else if (!strcmp(mode, "spin-itself-one"))
        run(1, spin_itself);
    else if (!strcmp(mode, "close"))
        wander(&close_by.one, &close_by.other);
    else if (!strcmp(mode, "apart"))
        wander(&apart.one, &apart.other);
    else
        return 2;
    return 0;
}
