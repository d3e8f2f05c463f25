/* Cancellation in waits: the cleanup handlers run, once, and own the mutex. */
#include "case.h"

#include <threads.h>

struct place {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int waiting, ready, woken, cleanups, unlock_code, probe_code;
};

struct way {
    const char *name;
    int (*wait)(pthread_cond_t *, pthread_mutex_t *);
};

static int timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
    struct timespec later = after_ms(CLOCK_REALTIME, 20000);
    return pthread_cond_timedwait(cond, mutex, &later);
}

static int clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
    struct timespec later = after_ms(CLOCK_MONOTONIC, 20000);
    return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &later);
}

static const struct way WAYS[] = {
    {"wait", pthread_cond_wait},
    {"timedwait", timedwait},
    {"clockwait", clockwait},
};

static struct place place;
static const struct way *way;
static int cancel_state;

static void note_and_unlock(void *unused) {
    (void)unused;
    place.cleanups++;
    place.probe_code = ELSEWHERE(probe, &place.mutex);
    place.unlock_code = pthread_mutex_unlock(&place.mutex);
}

static int wait_until_ready(void *unused) {
    (void)unused;
    pthread_setcancelstate(cancel_state, NULL);
    pthread_mutex_lock(&place.mutex);
    pthread_cleanup_push(note_and_unlock, NULL);
    place.waiting++;
    while (!place.ready) way->wait(&place.cond, &place.mutex);
    place.woken++;
    pthread_cleanup_pop(0);
    pthread_mutex_unlock(&place.mutex);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    return 77;
}

static void start(struct other *thread, Call call, int count) {
    *thread = (struct other){};
    thread->call = call;
    NEED(pthread_create(&thread->thread, NULL, other_main, thread) == 0);
    for (int waiting = 0; waiting < count; pause_ms(1)) {
        pthread_mutex_lock(&place.mutex);
        waiting = place.waiting;
        pthread_mutex_unlock(&place.mutex);
    }
}

static void make_place(int type, int shared, int robust) {
    place = (struct place){.unlock_code = -7, .probe_code = -7};
    cancel_state = PTHREAD_CANCEL_ENABLE;
    make_mutex(&place.mutex, type, shared, robust, PTHREAD_PRIO_NONE);
    make_cond(&place.cond, shared, CLOCK_REALTIME);
}

static bool was_cancelled(struct other *thread) {
    void *result = NULL;
    pthread_join(thread->thread, &result);
    return result == PTHREAD_CANCELED;
}

static void set_ready(void) {
    pthread_mutex_lock(&place.mutex);
    place.ready = 1;
    pthread_cond_broadcast(&place.cond);
    pthread_mutex_unlock(&place.mutex);
}

static void report(const char *name) {
    VALUE(place.cleanups, "cancel.%s.%s.handlers-run", way->name, name);
    CODE(place.probe_code, "cancel.%s.%s.mutex-held-in-handler", way->name, name);
    CODE(place.unlock_code, "cancel.%s.%s.handler-unlocks", way->name, name);
    CODE(probe(&place.mutex), "cancel.%s.%s.mutex-free-after", way->name, name);
    CODE(pthread_cond_destroy(&place.cond), "cancel.%s.%s.cond-destroy", way->name, name);
    CODE(pthread_mutex_destroy(&place.mutex), "cancel.%s.%s.mutex-destroy", way->name, name);
}

static void while_waiting(const char *name, int type, int shared, int robust) {
    struct other thread;
    make_place(type, shared, robust);
    start(&thread, wait_until_ready, 1);
    settle(&thread);
    CODE(pthread_cancel(thread.thread), "cancel.%s.%s.cancel", way->name, name);
    HOLDS(was_cancelled(&thread), "cancel.%s.%s.cancelled", way->name, name);
    report(name);
}

/* The cancelled thread has to get the mutex first: the handler may not run while somebody else has
   it. */
static void while_mutex_is_taken(void) {
    struct other thread;
    make_place(PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    start(&thread, wait_until_ready, 1);
    pthread_mutex_lock(&place.mutex);
    CODE(pthread_cancel(thread.thread), "cancel.%s.mutex-taken.cancel", way->name);
    pause_ms(6);
    VALUE(place.cleanups, "cancel.%s.mutex-taken.handlers-wait", way->name);
    pthread_mutex_unlock(&place.mutex);
    HOLDS(was_cancelled(&thread), "cancel.%s.mutex-taken.cancelled", way->name);
    report("mutex-taken");
}

/* Pending before the wait begins: the wait acts on it at once. */
static int wait_with_cancel_pending(void *unused) {
    (void)unused;
    pthread_mutex_lock(&place.mutex);
    pthread_cancel(pthread_self());
    pthread_cleanup_push(note_and_unlock, NULL);
    way->wait(&place.cond, &place.mutex);
    place.woken++;
    pthread_cleanup_pop(0);
    return 77;
}

static void pending(void) {
    struct other thread = {};
    make_place(PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    thread.call = wait_with_cancel_pending;
    NEED(pthread_create(&thread.thread, NULL, other_main, &thread) == 0);
    HOLDS(was_cancelled(&thread), "cancel.%s.pending.cancelled", way->name);
    VALUE(place.woken, "cancel.%s.pending.returned", way->name);
    report("pending");
}

static void disabled(void) {
    struct other thread;
    make_place(PTHREAD_MUTEX_NORMAL, 0, 0);
    cancel_state = PTHREAD_CANCEL_DISABLE;
    start(&thread, wait_until_ready, 1);
    CODE(pthread_cancel(thread.thread), "cancel.%s.disabled.cancel", way->name);
    settle(&thread);
    HOLDS(!is_done(&thread), "cancel.%s.disabled.waits-on", way->name);
    set_ready();
    HOLDS(was_cancelled(&thread), "cancel.%s.disabled.cancelled-when-enabled", way->name);
    VALUE(place.woken, "cancel.%s.disabled.returned", way->name);
    VALUE(place.cleanups, "cancel.%s.disabled.handlers-run", way->name);
}

/* A signal and a cancellation at the same time: if the cancelled thread did not return from its
 * wait by the signal, the other one did. */
static int take_one(void *unused) {
    (void)unused;
    pthread_mutex_lock(&place.mutex);
    pthread_cleanup_push(note_and_unlock, NULL);
    place.waiting++;
    way->wait(&place.cond, &place.mutex);
    __atomic_add_fetch(&place.woken, 1, __ATOMIC_ACQ_REL);
    pthread_cleanup_pop(0);
    pthread_mutex_unlock(&place.mutex);
    return 77;
}

static void signal_is_not_eaten(void) {
    int lost = 0;
    for (int i = 0; i < scaled(40); i++) {
        struct other cancelled, other;
        make_place(PTHREAD_MUTEX_NORMAL, 0, 0);
        start(&cancelled, take_one, 1);
        start(&other, take_one, 2);
        if (i % 2) pthread_cancel(cancelled.thread);
        pthread_cond_signal(&place.cond);
        if (i % 2 == 0) pthread_cancel(cancelled.thread);
        was_cancelled(&cancelled);
        bool took_it = __atomic_load_n(&place.woken, __ATOMIC_ACQUIRE) > 0;
        for (int patience = 0; !took_it && patience < 3000; patience++) {
            took_it = __atomic_load_n(&place.woken, __ATOMIC_ACQUIRE) > 0;
            pause_ms(1);
        }
        lost += !took_it;
        pthread_cond_broadcast(&place.cond);
        finish(&other);
    }
    VALUE(lost, "cancel.%s.signals-lost", way->name);
}

static pthread_mutex_t blocking = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

/* Mutexes and reader-writer locks are no cancellation points. */
static int lock_mutex(void *locked) {
    pthread_mutex_lock(&blocking);
    *(int *)locked = 1;
    pthread_mutex_unlock(&blocking);
    pthread_testcancel();
    return 77;
}

static int lock_rwlock(void *locked) {
    pthread_rwlock_wrlock(&rwlock);
    *(int *)locked = 1;
    pthread_rwlock_unlock(&rwlock);
    pthread_testcancel();
    return 77;
}

static void no_cancellation_points(void) {
    struct other thread;
    int locked = 0;
    pthread_mutex_lock(&blocking);
    begin(&thread, lock_mutex, &locked);
    pthread_cancel(thread.thread);
    settle(&thread);
    HOLDS(!is_done(&thread), "cancel.mutex.waits-on");
    pthread_mutex_unlock(&blocking);
    HOLDS(was_cancelled(&thread) && locked, "cancel.mutex.locks-then-is-cancelled");
    locked = 0;
    pthread_rwlock_rdlock(&rwlock);
    begin(&thread, lock_rwlock, &locked);
    pthread_cancel(thread.thread);
    settle(&thread);
    HOLDS(!is_done(&thread), "cancel.rwlock.waits-on");
    pthread_rwlock_unlock(&rwlock);
    HOLDS(was_cancelled(&thread) && locked, "cancel.rwlock.locks-then-is-cancelled");
}

/* Handlers run from the inside out, and may lock and wait themselves. */
static int order[4], order_length;
static pthread_mutex_t other_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t other_cond = PTHREAD_COND_INITIALIZER;

static void note_order(void *number) { order[order_length++] = (int)(long)number; }

static void wait_in_handler(void *unused) {
    (void)unused;
    note_order((void *)2);
    pthread_mutex_unlock(&place.mutex);
    struct timespec soon = after_ms(CLOCK_REALTIME, 3);
    CODE(pthread_mutex_lock(&other_mutex), "cancel.nested.handler-locks");
    CODE(pthread_cond_timedwait(&other_cond, &other_mutex, &soon), "cancel.nested.handler-waits");
    CODE(pthread_mutex_unlock(&other_mutex), "cancel.nested.handler-unlocks");
}

static int wait_with_nested_handlers(void *unused) {
    (void)unused;
    pthread_cleanup_push(note_order, (void *)1);
    pthread_mutex_lock(&place.mutex);
    pthread_cleanup_push(wait_in_handler, NULL);
    pthread_cleanup_push(note_order, (void *)3);
    place.waiting++;
    while (!place.ready) pthread_cond_wait(&place.cond, &place.mutex);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return 77;
}

static void nested_handlers(void) {
    struct other thread;
    make_place(PTHREAD_MUTEX_NORMAL, 0, 0);
    start(&thread, wait_with_nested_handlers, 1);
    pthread_cancel(thread.thread);
    HOLDS(was_cancelled(&thread), "cancel.nested.cancelled");
    for (int i = 0; i < order_length; i++) VALUE(order[i], "cancel.nested.order-%d", i);
    CODE(probe(&place.mutex), "cancel.nested.mutex-free-after");
}

/* pthread_exit runs handlers too, and a thread may leave out of a section. */
static int exit_in_section(void *unused) {
    (void)unused;
    pthread_mutex_lock(&place.mutex);
    pthread_cleanup_push(note_and_unlock, NULL);
    pthread_exit((void *)55);
    pthread_cleanup_pop(0);
    return 77;
}

static void exits_in_section(void) {
    struct other thread;
    void *result;
    make_place(PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    begin(&thread, exit_in_section, NULL);
    pthread_join(thread.thread, &result);
    VALUE((long)result, "cancel.exit.value");
    CODE(place.probe_code, "cancel.exit.mutex-held-in-handler");
    CODE(place.unlock_code, "cancel.exit.handler-unlocks");
    CODE(probe(&place.mutex), "cancel.exit.mutex-free-after");
}

static mtx_t c11_mutex;
static cnd_t c11_cond;
static int c11_cleanups, c11_waiting, c11_timed;

static void c11_cleanup(void *unused) {
    (void)unused;
    c11_cleanups += mtx_trylock(&c11_mutex) == thrd_busy;
    mtx_unlock(&c11_mutex);
}

static int c11_wait(void *unused) {
    (void)unused;
    struct timespec later = after_ms(CLOCK_REALTIME, 20000);
    mtx_lock(&c11_mutex);
    pthread_cleanup_push(c11_cleanup, NULL);
    __atomic_store_n(&c11_waiting, 1, __ATOMIC_RELEASE);
    for (;;) c11_timed ? cnd_timedwait(&c11_cond, &c11_mutex, &later) : cnd_wait(&c11_cond, &c11_mutex);
    pthread_cleanup_pop(0);
    return 77;
}

static void c11(void) {
    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&c11_cond);
    for (c11_timed = 0; c11_timed <= 1; c11_timed++) {
        const char *name = c11_timed ? "cnd_timedwait" : "cnd_wait";
        struct other thread;
        begin(&thread, c11_wait, NULL);
        CODE(pthread_cancel(thread.thread), "cancel.%s.cancel", name);
        HOLDS(was_cancelled(&thread), "cancel.%s.cancelled", name);
        VALUE(c11_cleanups, "cancel.%s.handlers-with-mutex", name);
        HOLDS(mtx_trylock(&c11_mutex) == thrd_success, "cancel.%s.mutex-free-after", name);
        mtx_unlock(&c11_mutex);
    }
}

int main(void) {
    for EACH(each, WAYS) {
        way = each;
        while_waiting("normal", PTHREAD_MUTEX_NORMAL, 0, 0);
        while_waiting("errorcheck", PTHREAD_MUTEX_ERRORCHECK, 0, 0);
        while_waiting("recursive", PTHREAD_MUTEX_RECURSIVE, 0, 0);
        while_waiting("shared", PTHREAD_MUTEX_NORMAL, 1, 0);
        while_waiting("robust", PTHREAD_MUTEX_NORMAL, 0, 1);
        while_mutex_is_taken();
        pending();
        disabled();
        signal_is_not_eaten();
    }
    no_cancellation_points();
    nested_handlers();
    exits_in_section();
    c11();
    return 0;
}
