/* Condition variables: who wakes, who does not, what errors there are; with each kind of mutex. */
#include "case.h"

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting, woken, tokens;

/* Waits for a token. While `mutex` can be had and `waiting` has counted a thread, that thread is
   inside its wait. */
static int take_token(void *unused) {
    (void)unused;
    int code = pthread_mutex_lock(&mutex);
    waiting++;
    while (code == 0 && tokens == 0) code = pthread_cond_wait(&cond, &mutex);
    tokens--;
    waiting--;
    woken++;
    pthread_mutex_unlock(&mutex);
    return code;
}

static void start_waiters(struct other *waiters, int count) {
    waiting = woken = tokens = 0;
    for (int i = 0; i < count; i++) {
        waiters[i] = (struct other){};
        waiters[i].call = take_token;
        NEED(pthread_create(&waiters[i].thread, NULL, other_main, &waiters[i]) == 0);
    }
    for (int inside = 0; inside < count; pause_ms(1)) {
        pthread_mutex_lock(&mutex);
        inside = waiting;
        pthread_mutex_unlock(&mutex);
    }
}

static int woken_when(int expected) {
    int now_woken = 0;
    for (int patience = 0; patience < 5000; patience++) {
        pthread_mutex_lock(&mutex);
        now_woken = woken;
        pthread_mutex_unlock(&mutex);
        if (now_woken >= expected) break;
        pause_ms(1);
    }
    return now_woken;
}

static void signals(const char *kind) {
    struct other waiters[5];
    start_waiters(waiters, 5);
    for (int i = 1; i <= 3; i++) {
        pthread_mutex_lock(&mutex);
        tokens++;
        CODE(pthread_cond_signal(&cond), "cond.%s.signal-%d", kind, i);
        pthread_mutex_unlock(&mutex);
        VALUE(woken_when(i), "cond.%s.woken-after-%d", kind, i);
    }
    /* Unlocked, as most programs do it. */
    pthread_mutex_lock(&mutex);
    tokens += 2;
    pthread_mutex_unlock(&mutex);
    CODE(pthread_cond_broadcast(&cond), "cond.%s.broadcast", kind);
    VALUE(woken_when(5), "cond.%s.woken-after-broadcast", kind);
    for (int i = 0; i < 5; i++) CODE(finish(&waiters[i]), "cond.%s.waiter-%d", kind, i);
    VALUE(tokens, "cond.%s.tokens-left", kind);
}

static void broadcast_with_nobody_then_wait(const char *kind) {
    CODE(pthread_cond_signal(&cond), "cond.%s.signal-for-nobody", kind);
    CODE(pthread_cond_broadcast(&cond), "cond.%s.broadcast-for-nobody", kind);
    pthread_mutex_lock(&mutex);
    struct timespec soon = after_ms(CLOCK_REALTIME, 6);
    CODE(pthread_cond_timedwait(&cond, &mutex, &soon), "cond.%s.earlier-signal-is-not-kept", kind);
    CODE(ELSEWHERE(probe, &mutex), "cond.%s.mutex-held-after-timeout", kind);
    pthread_mutex_unlock(&mutex);
}

/* One signal, many waiters without a predicate: exactly one returns (no spurious wake-up in so
   short a time). */
static int returned;

static int wait_once(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    waiting++;
    int code = pthread_cond_wait(&cond, &mutex);
    returned++;
    pthread_mutex_unlock(&mutex);
    return code;
}

/* How many have returned once `expected` have and the others had time to. */
static int returned_when(int expected) {
    int count = 0;
    for (int patience = 0; count < expected && patience < 5000; patience++) {
        pause_ms(1);
        pthread_mutex_lock(&mutex);
        count = returned;
        pthread_mutex_unlock(&mutex);
    }
    pause_ms(5);
    pthread_mutex_lock(&mutex);
    count = returned;
    pthread_mutex_unlock(&mutex);
    return count;
}

static void exactly_one(const char *kind) {
    struct other waiters[4];
    returned = waiting = 0;
    for (int i = 0; i < 4; i++) begin(&waiters[i], wait_once, NULL);
    pthread_mutex_lock(&mutex);
    VALUE(waiting, "cond.%s.exactly-one.waiting", kind);
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    VALUE(returned_when(1), "cond.%s.exactly-one.returned", kind);
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&cond);
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    VALUE(returned_when(3), "cond.%s.exactly-one.after-two-more", kind);
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&cond);
    VALUE(returned, "cond.%s.exactly-one.none-before-unlock", kind);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 4; i++) CODE(finish(&waiters[i]), "cond.%s.exactly-one.waiter-%d", kind, i);
}

/* While a thread waits, the mutex is free for others, and theirs until they unlock. */
static void mutex_during_wait(const char *kind) {
    struct other waiter;
    start_waiters(&waiter, 1);
    CODE(pthread_mutex_trylock(&mutex), "cond.%s.mutex-free-during-wait", kind);
    tokens = 1;
    pthread_cond_signal(&cond);
    pause_ms(3);
    HOLDS(woken == 0 && !is_done(&waiter), "cond.%s.woken-waits-for-mutex", kind);
    CODE(pthread_mutex_unlock(&mutex), "cond.%s.mutex-unlock", kind);
    CODE(finish(&waiter), "cond.%s.waiter-returns", kind);
}

static void not_owned(const struct mutex_kind *kind) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 3);
    CODE(pthread_cond_wait(&cond, &mutex), "cond.%s.not-owned.wait", kind->name);
    CODE(pthread_cond_timedwait(&cond, &mutex, &soon), "cond.%s.not-owned.timedwait", kind->name);
    CODE(pthread_cond_clockwait(&cond, &mutex, CLOCK_REALTIME, &soon), "cond.%s.not-owned.clockwait", kind->name);
    struct other owner;
    begin(&owner, (Call)pthread_mutex_lock, &mutex);
    CODE(finish(&owner), "cond.%s.owned-elsewhere.lock", kind->name);
    CODE(pthread_cond_wait(&cond, &mutex), "cond.%s.owned-elsewhere.wait", kind->name);
    make_mutex_of_type(&mutex, kind->type);
    CODE(pthread_mutex_destroy(&mutex), "cond.%s.mutex-destroy", kind->name);
    CODE(pthread_cond_wait(&cond, &mutex), "cond.%s.mutex-destroyed.wait", kind->name);
    CODE(pthread_cond_signal(&cond), "cond.%s.signal-after-errors", kind->name);
}

/* A wait gives up one level of a recursive mutex only: no other thread gets it, and the depth is the
   same after. */
static void deep_recursive_wait(void) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
    struct other prober;
    begin(&prober, probe, &mutex);
    struct timespec soon = after_ms(CLOCK_REALTIME, 6);
    CODE(pthread_cond_timedwait(&cond, &mutex, &soon), "cond.recursive-twice.timedwait");
    CODE(finish(&prober), "cond.recursive-twice.held-meanwhile");
    CODE(pthread_mutex_unlock(&mutex), "cond.recursive-twice.unlock-1");
    CODE(ELSEWHERE(probe, &mutex), "cond.recursive-twice.still-held");
    CODE(pthread_mutex_unlock(&mutex), "cond.recursive-twice.unlock-2");
    CODE(pthread_mutex_unlock(&mutex), "cond.recursive-twice.unlock-3");
}

int main(void) {
    for EACH(kind, MUTEX_KINDS) {
        make_mutex_of_type(&mutex, kind->type);
        signals(kind->name);
        broadcast_with_nobody_then_wait(kind->name);
        exactly_one(kind->name);
        mutex_during_wait(kind->name);
        if (kind->type == PTHREAD_MUTEX_RECURSIVE) deep_recursive_wait();
        if (kind->type == PTHREAD_MUTEX_RECURSIVE || kind->type == PTHREAD_MUTEX_ERRORCHECK) not_owned(kind);
    }
    CODE(pthread_cond_destroy(&cond), "cond.static.destroy");
    return 0;
}
