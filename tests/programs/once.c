/* pthread_once: races, recursion into locks, and cancellation of the routine. */
#include "case.h"

static int calls, attempts, cleaned;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void count_call(void) { calls++; }

static void slow_call(void) {
    pthread_mutex_lock(&mutex);
    pause_ms(5);
    calls++;
    pthread_mutex_unlock(&mutex);
}

static pthread_once_t raced = PTHREAD_ONCE_INIT;
static int unfinished;

static void race(long index) {
    (void)index;
    NEED(pthread_once(&raced, slow_call) == 0);
    if (__atomic_load_n(&calls, __ATOMIC_ACQUIRE) != 1) unfinished = 1;
}

static void note_cleanup(void *unused) {
    (void)unused;
    cleaned++;
}

/* Waits in a cancellation point the first time, returns the second time. */
static void cancelled_call(void) {
    pthread_cleanup_push(note_cleanup, NULL);
    if (__atomic_add_fetch(&attempts, 1, __ATOMIC_ACQ_REL) == 1) {
        for (;;) pause_ms(1000);
    }
    pthread_cleanup_pop(0);
}

static pthread_once_t cancellable = PTHREAD_ONCE_INIT;

static int once_cancellable(void *unused) {
    (void)unused;
    return pthread_once(&cancellable, cancelled_call);
}

static void cancelled(void) {
    struct other first, second;
    begin(&first, once_cancellable, NULL);
    begin(&second, once_cancellable, NULL);
    HOLDS(!is_done(&second), "once.cancelled.second-waits");
    CODE(pthread_cancel(first.thread), "once.cancelled.cancel");
    void *result = NULL;
    pthread_join(first.thread, &result);
    HOLDS(result == PTHREAD_CANCELED, "once.cancelled.first-is-cancelled");
    CODE(finish(&second), "once.cancelled.second");
    VALUE(attempts, "once.cancelled.attempts");
    VALUE(cleaned, "once.cancelled.handlers-run");
    CODE(once_cancellable(NULL), "once.cancelled.third");
    VALUE(attempts, "once.cancelled.attempts-after");
}

static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int waits;

static void unlock_mutex(void *unused) {
    (void)unused;
    cleaned++;
    pthread_mutex_unlock(&mutex);
}

/* The first time, waits with a mutex for what does not come. */
static void waiting_call(void) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock_mutex, NULL);
    while (waits++ == 0) pthread_cond_wait(&never, &mutex);
    pthread_cleanup_pop(1);
}

static pthread_once_t waiting = PTHREAD_ONCE_INIT;

static int once_waiting(void *unused) {
    (void)unused;
    return pthread_once(&waiting, waiting_call);
}

static void cancelled_in_wait(void) {
    struct other first, second;
    cleaned = 0;
    begin(&first, once_waiting, NULL);
    begin(&second, once_waiting, NULL);
    HOLDS(!is_done(&second), "once.cancelled-in-wait.second-waits");
    CODE(pthread_cancel(first.thread), "once.cancelled-in-wait.cancel");
    void *result = NULL;
    pthread_join(first.thread, &result);
    HOLDS(result == PTHREAD_CANCELED, "once.cancelled-in-wait.first-is-cancelled");
    CODE(finish(&second), "once.cancelled-in-wait.second");
    VALUE(cleaned, "once.cancelled-in-wait.handlers-run");
    CODE(pthread_mutex_trylock(&mutex), "once.cancelled-in-wait.mutex-free-after");
    pthread_mutex_unlock(&mutex);
}

static pthread_once_t outer = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;

static void call_inner(void) { NEED(pthread_once(&inner, count_call) == 0); }

int main(void) {
    pthread_once_t once = PTHREAD_ONCE_INIT;
    for (int i = 1; i <= 3; i++) {
        CODE(pthread_once(&once, count_call), "once.call-%d", i);
        VALUE(calls, "once.calls-after-%d", i);
    }
    calls = 0;
    crew(8, race);
    VALUE(calls, "once.race.calls");
    HOLDS(!unfinished, "once.race.all-saw-it-finished");
    calls = 0;
    CODE(pthread_once(&outer, call_inner), "once.nested");
    VALUE(calls, "once.nested.calls");
    cancelled();
    cancelled_in_wait();
    return 0;
}
