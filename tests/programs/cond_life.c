/* Condition variables at work: queues, hand-overs, and destruction as soon as POSIX allows it. */
#include "case.h"

/* A bounded queue of two places: each wait is needed, each wake-up has to reach somebody who can
   use it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static long queue[2], held, taken_sum, items;

static void put(long item) {
    pthread_mutex_lock(&mutex);
    while (held == 2) pthread_cond_wait(&not_full, &mutex);
    queue[held++] = item;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&mutex);
}

static void take(void) {
    pthread_mutex_lock(&mutex);
    while (held == 0) pthread_cond_wait(&not_empty, &mutex);
    taken_sum += queue[--held];
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&not_full);
}

static void produce_or_consume(long index) {
    for (long i = 1; i <= items; i++) index % 2 ? put(i) : take();
}

/* A barrier of a mutex and a condition variable, used again and again: a wake-up may not leak into
   the next round. */
static long arrived, round_number, barrier_rounds;

static void rounds_of_a_barrier(long index) {
    (void)index;
    for (long i = 0; i < barrier_rounds; i++) {
        pthread_mutex_lock(&mutex);
        long mine = round_number;
        if (++arrived == 4) {
            arrived = 0;
            round_number++;
            pthread_cond_broadcast(&not_empty);
        } else {
            while (round_number == mine) pthread_cond_wait(&not_empty, &mutex);
        }
        pthread_mutex_unlock(&mutex);
    }
}

struct short_lived {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int ready, waiting, users;
};

static int wait_then_leave(void *argument) {
    struct short_lived *it = argument;
    pthread_mutex_lock(&it->mutex);
    it->waiting++;
    while (!it->ready) pthread_cond_wait(&it->cond, &it->mutex);
    it->users--;
    pthread_mutex_unlock(&it->mutex);
    return 0;
}

/* Destroys right after the broadcast, while the waiters are still on their way out of their waits,
 * then makes the bytes useless. POSIX allows that, because no thread is blocked any more. */
static void destroyed_after_broadcast(int waiters) {
    struct other others[4];
    int good = 0;
    for (int i = 0; i < scaled(40); i++) {
        struct short_lived it = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, waiters};
        for (int w = 0; w < waiters; w++) {
            others[w] = (struct other){};
            others[w].call = wait_then_leave;
            others[w].object = &it;
            NEED(pthread_create(&others[w].thread, NULL, other_main, &others[w]) == 0);
        }
        for (int inside = 0; inside < waiters; sched_yield()) {
            pthread_mutex_lock(&it.mutex);
            inside = it.waiting;
            pthread_mutex_unlock(&it.mutex);
        }
        pthread_mutex_lock(&it.mutex);
        it.ready = 1;
        pthread_cond_broadcast(&it.cond);
        pthread_mutex_unlock(&it.mutex);
        good += pthread_cond_destroy(&it.cond) == 0;
        memset(&it.cond, 0x5a, sizeof it.cond);
        for (int w = 0; w < waiters; w++) finish(&others[w]);
        for (size_t byte = 0; byte < sizeof it.cond; byte++) good -= ((unsigned char *)&it.cond)[byte] != 0x5a;
        pthread_mutex_destroy(&it.mutex);
    }
    HOLDS(good == scaled(40), "cond.destroyed-after-broadcast.%d-waiters", waiters);
}

/* The waiter destroys and unmaps as soon as it is woken: the signaller may not touch the bytes
   after that. */
static int wait_then_unmap(void *argument) {
    struct short_lived *it = argument;
    pthread_mutex_lock(&it->mutex);
    it->waiting = 1;
    while (!it->ready) pthread_cond_wait(&it->cond, &it->mutex);
    pthread_mutex_unlock(&it->mutex);
    pthread_cond_destroy(&it->cond);
    pthread_mutex_destroy(&it->mutex);
    munmap(it, 4096);
    return 0;
}

static void unmapped_by_the_woken(void) {
    for (int i = 0; i < scaled(100); i++) {
        struct short_lived *it = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        NEED(it != MAP_FAILED);
        pthread_mutex_init(&it->mutex, NULL);
        pthread_cond_init(&it->cond, NULL);
        struct other waiter = {};
        waiter.call = wait_then_unmap;
        waiter.object = it;
        NEED(pthread_create(&waiter.thread, NULL, other_main, &waiter) == 0);
        for (int inside = 0; !inside; sched_yield()) {
            pthread_mutex_lock(&it->mutex);
            inside = it->waiting;
            pthread_mutex_unlock(&it->mutex);
        }
        pthread_mutex_lock(&it->mutex);
        it->ready = 1;
        pthread_cond_signal(&it->cond);
        pthread_mutex_unlock(&it->mutex);
        finish(&waiter);
    }
    HOLDS(true, "cond.unmapped-by-the-woken");
}

static void between_guards(void) {
    struct {
        uint64_t before;
        pthread_cond_t cond;
        uint64_t after;
    } placed = {0xa5a5a5a5a5a5a5a5, PTHREAD_COND_INITIALIZER, 0xa5a5a5a5a5a5a5a5};
    struct timespec soon = after_ms(CLOCK_REALTIME, 2);
    pthread_mutex_lock(&mutex);
    CODE(pthread_cond_timedwait(&placed.cond, &mutex, &soon), "cond.guarded.timedwait");
    pthread_mutex_unlock(&mutex);
    CODE(pthread_cond_broadcast(&placed.cond), "cond.guarded.broadcast");
    CODE(pthread_cond_destroy(&placed.cond), "cond.guarded.destroy");
    HOLDS(placed.before == 0xa5a5a5a5a5a5a5a5 && placed.after == placed.before, "cond.guarded.neighbours-untouched");
}

/* A condition variable made again in the same bytes after destruction, and one of zero bytes. */
static void made_again(void) {
    pthread_cond_t cond;
    for (int i = 0; i < 3; i++) {
        memset(&cond, 0xff, sizeof cond);
        CODE(pthread_cond_init(&cond, NULL), "cond.made-again.init-%d", i);
        struct timespec soon = after_ms(CLOCK_REALTIME, 2);
        pthread_mutex_lock(&mutex);
        CODE(pthread_cond_timedwait(&cond, &mutex, &soon), "cond.made-again.timedwait-%d", i);
        pthread_mutex_unlock(&mutex);
        CODE(pthread_cond_destroy(&cond), "cond.made-again.destroy-%d", i);
    }
    pthread_cond_t *zeroed = calloc(1, sizeof *zeroed);
    CODE(pthread_cond_signal(zeroed), "cond.zeroed.signal");
    CODE(pthread_cond_destroy(zeroed), "cond.zeroed.destroy");
    free(zeroed);
}

/* One waiter's time runs out while another is signalled: no wake-up is lost between them. */
static int tokens;

static int take_with_patience(void *argument) {
    int got = 0;
    for (int i = 0; i < 50 * scaled(100); i++) {
        struct timespec soon = after_ms(CLOCK_MONOTONIC, argument ? 20000 : 0);
        pthread_mutex_lock(&mutex);
        int code = 0;
        while (tokens == 0 && code == 0) code = pthread_cond_clockwait(&not_full, &mutex, CLOCK_MONOTONIC, &soon);
        if (tokens > 0) tokens--, got++;
        pthread_mutex_unlock(&mutex);
        if (argument && got == *(int *)argument) break;
        if (argument && code) return -1;
    }
    return got;
}

static void timeouts_beside_signals(void) {
    struct other patient, hasty;
    int enough = 20;
    begin(&patient, take_with_patience, &enough);
    hasty = (struct other){};
    hasty.call = take_with_patience;
    NEED(pthread_create(&hasty.thread, NULL, other_main, &hasty) == 0);
    while (!is_done(&patient)) {
        pthread_mutex_lock(&mutex);
        tokens++;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&mutex);
        sched_yield();
    }
    VALUE(finish(&patient), "cond.timeouts-beside-signals");
    finish(&hasty);
}

/* A broadcast among waiters of which some run out of time just then, and some are cancelled: all
 * leave. */
static long generation, inside, timed_out_or_told;

static void let_go(void *unused) {
    (void)unused;
    inside--;
    pthread_mutex_unlock(&mutex);
}

static void *wait_in_a_crowd(void *argument) {
    long kind = (long)argument;
    pthread_mutex_lock(&mutex);
    inside++;
    pthread_cleanup_push(let_go, NULL);
    long mine = generation;
    while (generation == mine) {
        if (kind % 3 == 1) {
            struct timespec soon = after_ms(CLOCK_REALTIME, kind / 3);
            if (pthread_cond_timedwait(&not_full, &mutex, &soon) == ETIMEDOUT) break;
        } else {
            pthread_cond_wait(&not_full, &mutex);
        }
    }
    timed_out_or_told++;
    pthread_cleanup_pop(1);
    return NULL;
}

static void broadcasts_in_a_crowd(void) {
    enum { CROWD = 9 };
    pthread_t threads[CROWD];
    long cancelled = 0;
    for (int i = 0; i < scaled(40); i++) {
        for (long t = 0; t < CROWD; t++) {
            NEED(pthread_create(&threads[t], NULL, wait_in_a_crowd, (void *)t) == 0);
        }
        for (int all = 0; !all; sched_yield()) {
            pthread_mutex_lock(&mutex);
            all = inside + timed_out_or_told == CROWD;
            pthread_mutex_unlock(&mutex);
        }
        for (int t = 2; t < CROWD; t += 3) pthread_cancel(threads[t]);
        pthread_mutex_lock(&mutex);
        generation++;
        pthread_cond_broadcast(&not_full);
        pthread_mutex_unlock(&mutex);
        for (int t = 0; t < CROWD; t++) {
            void *result;
            NEED(pthread_join(threads[t], &result) == 0);
            cancelled += result == PTHREAD_CANCELED;
        }
        cancelled += timed_out_or_told;
        timed_out_or_told = 0;
    }
    HOLDS(cancelled == CROWD * (long)scaled(40), "cond.crowd.everybody-leaves");
    VALUE(inside, "cond.crowd.left");
}

int main(void) {
    items = scaled(300);
    crew(4, produce_or_consume);
    HOLDS(taken_sum == items * (items + 1), "cond.queue.everything-arrives");
    VALUE(held, "cond.queue.left");
    barrier_rounds = scaled(40);
    crew(4, rounds_of_a_barrier);
    HOLDS(round_number == barrier_rounds, "cond.barrier.rounds");
    for (int waiters = 1; waiters <= 4; waiters++) destroyed_after_broadcast(waiters);
    unmapped_by_the_woken();
    between_guards();
    made_again();
    timeouts_beside_signals();
    broadcasts_in_a_crowd();
    CODE(pthread_cond_destroy(&not_full), "cond.life.destroy");
    return 0;
}
