/* Waiters that are cancelled while they are told: the condition variable is destroyed and its
   memory unmapped by then. */
#include "case.h"

enum { WAITERS = 3 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int waiting;
static pthread_cond_t *cond;

static void unlock(void *held) { pthread_mutex_unlock(held); }

static void *wait_for_ever(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    waiting++;
    pthread_cond_wait(cond, &mutex);
    pthread_cleanup_pop(1);
    return NULL;
}

static void tell_by_broadcast(void) { pthread_cond_broadcast(cond); }

static void tell_one_by_one(void) {
    for (int i = 0; i < WAITERS; i++) pthread_cond_signal(cond);
}

static void tell_one_then_all(void) {
    pthread_cond_signal(cond);
    pthread_cond_broadcast(cond);
}

static int round_of(void (*tell)(void), int cancel_first) {
    pthread_t threads[WAITERS];
    int good = 0;
    cond = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(cond != MAP_FAILED);
    pthread_cond_init(cond, NULL);
    waiting = 0;
    for (int i = 0; i < WAITERS; i++) NEED(pthread_create(&threads[i], NULL, wait_for_ever, NULL) == 0);
    for (int all = 0; !all;) {
        pthread_mutex_lock(&mutex);
        all = waiting == WAITERS;
        if (!all) pthread_mutex_unlock(&mutex), pause_ms(1);
    }
    if (!cancel_first) tell();
    for (int i = 0; i < WAITERS; i++) pthread_cancel(threads[i]);
    if (cancel_first) tell();
    /* The mutex is held all the time: no waiter can have begun to wait since. */
    good += pthread_cond_destroy(cond) == 0;
    /* Any access from here on is a fault. */
    good += munmap(cond, 4096) == 0;
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < WAITERS; i++) good += pthread_join(threads[i], NULL) == 0;
    return good == 2 + WAITERS;
}

/* A signal is for somebody who waits: if the one that it was meant for is cancelled, for the
   other. */
static int signal_is_not_lost(void) {
    static pthread_cond_t here = PTHREAD_COND_INITIALIZER;
    pthread_t threads[2];
    cond = &here;
    waiting = 0;
    for (int i = 0; i < 2; i++) {
        NEED(pthread_create(&threads[i], NULL, wait_for_ever, NULL) == 0);
        for (int there = 0; !there;) {
            pthread_mutex_lock(&mutex);
            there = waiting == i + 1;
            pthread_mutex_unlock(&mutex);
            if (!there) pause_ms(1);
        }
    }
    pthread_mutex_lock(&mutex);
    pthread_cancel(threads[0]);
    pthread_cond_signal(cond);
    pthread_mutex_unlock(&mutex);
    void *result = NULL;
    pthread_join(threads[0], &result);
    /* One that took the signal has left the other to wait. */
    if (result != PTHREAD_CANCELED) {
        pthread_mutex_lock(&mutex);
        pthread_cond_signal(cond);
        pthread_mutex_unlock(&mutex);
    }
    return pthread_join(threads[1], NULL) == 0;
}

int main(void) {
    static const struct { const char *name; void (*tell)(void); } WAYS[] = {
        {"broadcast", tell_by_broadcast}, {"signals", tell_one_by_one}, {"both", tell_one_then_all}};
    int rounds = scaled(30);
    for (int way = 0; way < 3; way++)
        for (int first = 0; first < 2; first++) {
            int good = 0;
            for (int i = 0; i < rounds; i++) good += round_of(WAYS[way].tell, first);
            HOLDS(good == rounds, "cancel.gone.%s.%s", WAYS[way].name, first ? "cancelled-first" : "told-first");
        }
    int good = 0;
    for (int i = 0; i < rounds; i++) good += signal_is_not_lost();
    HOLDS(good == rounds, "cancel.gone.no-signal-is-lost");
    return 0;
}
