// Waits for condition variables: the first word says for what. Of a lock that is made of a mutex
// and a condition variable (lock, bare, tickets, semaphore, rwlock), and of anything else (starved,
// bounded, single, pool, barrier, timer, replies).
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 4
#define ROUNDS 150

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER, other = PTHREAD_COND_INITIALIZER;
static pthread_cond_t turns[THREADS] = { [0 ... THREADS - 1] = PTHREAD_COND_INITIALIZER };
static int held, permits = 2, readers, items, ended, capacity = 1000000;
static unsigned next_ticket, serving;

static void work(long us)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000L + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

static void nap(long us)
{
    struct timespec time = { us / 1000000, us % 1000000 * 1000 };
    nanosleep(&time, 0);
}

// What is done under a lock. It sleeps in between, so that others come to wait on one CPU, too.
static void hold(void)
{
    work(150);
    nap(50);
}

#define LOCK pthread_mutex_lock(&mutex)
#define UNLOCK pthread_mutex_unlock(&mutex)

__attribute__((noinline)) static void enter(void)
{
    LOCK;
    while (held)
        pthread_cond_wait(&changed, &mutex);
    held = 1;
    UNLOCK;
}

__attribute__((noinline)) static void leave(void)
{
    LOCK;
    held = 0;
    pthread_cond_signal(&changed);
    UNLOCK;
}

__attribute__((noinline)) static void leave_bare(void)
{
    LOCK;
    held = 0;
    UNLOCK;
    pthread_cond_broadcast(&changed);
}

static void *lock(void *unused)
{
    for (int i = 0; i < ROUNDS; i++)
        enter(), hold(), leave(), nap(100);
    return unused;
}

static void *bare(void *unused)
{
    for (int i = 0; i < ROUNDS; i++)
        enter(), hold(), leave_bare(), nap(100);
    return unused;
}

static void *tickets(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        LOCK;
        unsigned mine = next_ticket++;
        while (serving != mine)
            pthread_cond_wait(&turns[mine % THREADS], &mutex);
        UNLOCK;
        hold();
        LOCK;
        serving++;
        pthread_cond_signal(&turns[serving % THREADS]);
        UNLOCK;
    }
    return unused;
}

static void *semaphore(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        LOCK;
        while (!permits)
            pthread_cond_wait(&changed, &mutex);
        permits--;
        UNLOCK;
        nap(300);
        LOCK;
        permits++;
        pthread_cond_signal(&changed);
        UNLOCK;
        nap(100);
    }
    return unused;
}

static void *rwlock(void *seed)
{
    unsigned dice = (unsigned)(long)seed;
    for (int i = 0; i < ROUNDS; i++) {
        int writes = rand_r(&dice) % 2;
        LOCK;
        while (held || (writes && readers))
            pthread_cond_wait(&changed, &mutex);
        held = writes, readers += !writes;
        UNLOCK;
        hold();
        LOCK;
        held = 0, readers -= !writes;
        if (!readers)
            pthread_cond_broadcast(&changed);
        UNLOCK;
        nap(100);
    }
    return seed;
}

// Items that threads take. Those that come seldom are waited for by all; a queue of few places is
// waited for at both ends.
static void *take(void *slow)
{
    for (;;) {
        LOCK;
        while (!items && !ended)
            pthread_cond_wait(&changed, &mutex);
        if (!items) {
            UNLOCK;
            return 0;
        }
        items--;
        pthread_cond_signal(&other);
        UNLOCK;
        work((long)slow);
    }
}

static void put(int number, long pause)
{
    for (int i = 0; i < number; i++) {
        if (pause)
            nap(pause);
        LOCK;
        while (items == capacity)
            pthread_cond_wait(&other, &mutex);
        items++;
        pthread_cond_signal(&changed);
        UNLOCK;
    }
    LOCK;
    ended = 1;
    pthread_cond_broadcast(&changed);
    UNLOCK;
}

// One place, one condition variable.
static void *single(void *side)
{
    for (int i = 0; i < ROUNDS * 4; i++) {
        LOCK;
        while (items == ((long)side & 1))
            pthread_cond_wait(&changed, &mutex);
        items = !items;
        pthread_cond_broadcast(&changed);
        UNLOCK;
        work((long)side & 1 ? 20 : 100);
    }
    return side;
}

static void *barrier(void *seed)
{
    unsigned dice = (unsigned)(long)seed;
    for (int i = 0; i < ROUNDS; i++) {
        work(rand_r(&dice) % 400);
        LOCK;
        unsigned round = next_ticket;
        if (++items == THREADS) {
            items = 0;
            next_ticket++;
            pthread_cond_broadcast(&changed);
        } else {
            while (round == next_ticket)
                pthread_cond_wait(&changed, &mutex);
        }
        UNLOCK;
    }
    return 0;
}

static void *timer(void *unused)
{
    for (int i = 0; i < 20; i++) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 5000000;
        if (until.tv_nsec >= 1000000000)
            until.tv_sec++, until.tv_nsec -= 1000000000;
        LOCK;
        pthread_cond_timedwait(&changed, &mutex, &until);
        UNLOCK;
    }
    return unused;
}

// A thread that answers, and threads that ask it and wait for the answer.
static int asked, answered;
static void *answer(void *unused)
{
    for (int i = 0; i < ROUNDS * (THREADS - 1); i++) {
        LOCK;
        while (!asked)
            pthread_cond_wait(&changed, &mutex);
        asked--;
        UNLOCK;
        work(50);
        LOCK;
        answered++;
        pthread_cond_broadcast(&other);
        UNLOCK;
    }
    return unused;
}

static void *ask(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        LOCK;
        asked++;
        pthread_cond_signal(&changed);
        while (!answered)
            pthread_cond_wait(&other, &mutex);
        answered--;
        UNLOCK;
        work(20);
    }
    return unused;
}

// A thread that gives others work and waits until all of it is done: one condition variable for
// both.
static void *do_job(void *unused)
{
    for (;;) {
        LOCK;
        while (!asked && !ended)
            pthread_cond_wait(&changed, &mutex);
        if (!asked) {
            UNLOCK;
            return unused;
        }
        asked--;
        UNLOCK;
        work(100);
        LOCK;
        answered++;
        pthread_cond_broadcast(&changed);
        UNLOCK;
    }
}

static void give_jobs(void)
{
    pthread_t all[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&all[i], 0, do_job, 0);
    for (int i = 0; i < ROUNDS; i++) {
        LOCK;
        asked = THREADS, answered = 0;
        pthread_cond_broadcast(&changed);
        while (answered < THREADS)
            pthread_cond_wait(&changed, &mutex);
        UNLOCK;
    }
    LOCK;
    ended = 1;
    pthread_cond_broadcast(&changed);
    UNLOCK;
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], 0);
}

// Readers and writers wait in places of their own.
static void *rwlock2(void *seed)
{
    unsigned dice = (unsigned)(long)seed;
    for (int i = 0; i < ROUNDS; i++) {
        int writes = rand_r(&dice) % 2;
        LOCK;
        if (writes) {
            while (held || readers)
                pthread_cond_wait(&changed, &mutex);
            held = 1;
        } else {
            while (held)
                pthread_cond_wait(&changed, &mutex);
            readers++;
        }
        UNLOCK;
        hold();
        LOCK;
        held = 0, readers -= !writes;
        if (!readers)
            pthread_cond_broadcast(&changed);
        UNLOCK;
        nap(100);
    }
    return seed;
}

static void run(void *(*body)(void *), int threads)
{
    pthread_t all[THREADS];
    for (long i = 0; i < threads; i++)
        pthread_create(&all[i], 0, body, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], 0);
}

static void feed(int takers, long slow, int number, long pause)
{
    pthread_t all[THREADS];
    for (int i = 0; i < takers; i++)
        pthread_create(&all[i], 0, take, (void *)slow);
    put(number, pause);
    for (int i = 0; i < takers; i++)
        pthread_join(all[i], 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "lock"))
        run(lock, THREADS);
    else if (!strcmp(what, "bare"))
        run(bare, THREADS);
    else if (!strcmp(what, "tickets"))
        run(tickets, THREADS);
    else if (!strcmp(what, "semaphore"))
        run(semaphore, THREADS);
    else if (!strcmp(what, "rwlock"))
        run(rwlock, THREADS);
    else if (!strcmp(what, "rwlock2"))
        run(rwlock2, THREADS);
    else if (!strcmp(what, "jobs"))
        give_jobs();
    else if (!strcmp(what, "starved"))
        feed(THREADS, 100, 300, 300);
    else if (!strcmp(what, "pool"))
        feed(THREADS, 0, 10, 20000);
    else if (!strcmp(what, "bounded"))
        capacity = 4, feed(2, 200, 600, 0);
    else if (!strcmp(what, "single"))
        run(single, 2);
    else if (!strcmp(what, "barrier"))
        run(barrier, THREADS);
    else if (!strcmp(what, "timer"))
        run(timer, 2);
    else if (!strcmp(what, "replies")) {
        pthread_t server;
        pthread_create(&server, 0, answer, 0);
        run(ask, THREADS - 1);
        pthread_join(server, 0);
    } else
        return 2;
    return 0;
}
