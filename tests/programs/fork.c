/* fork in a process with threads: handlers that take and release locks, children that use every
 * object, forks in the middle of contention, children of children. */
#include "case.h"

/* What the names of the cases begin with. */
#ifndef FORK
#define FORK "fork"
#endif

static pthread_mutex_t kinds[4], prepared = PTHREAD_MUTEX_INITIALIZER, busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
/* Has waiters when the process forks, which the child does not have: no thread may count on it
   there. */
static pthread_cond_t waited_on = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static int order[8], order_length, stop;
static long turns, rounds;

/* Read-locked, not write-locked: glibc takes a child for another owner, which may not release what
   the parent wrote. */
static void before_fork(void) {
    pthread_mutex_lock(&prepared);
    pthread_rwlock_rdlock(&rwlock);
    pthread_spin_lock(&spin);
}

static void after_fork(void) {
    pthread_spin_unlock(&spin);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_unlock(&prepared);
}

static void note(int which) {
    if (order_length < 8) order[order_length++] = which;
}
static void first_prepares(void) { note(1); }
static void second_prepares(void) { note(2); }
static void first_in_parent(void) { note(3); }
static void second_in_parent(void) { note(4); }

static void count_turn(long index) {
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&prepared);
        while (turns % 2 != index) pthread_cond_wait(&cond, &prepared);
        turns++;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&prepared);
    }
}

/* What a child does that is allowed more than async-signal-safe calls, as servers do it all the
   same. */
static int use_everything(void *unused) {
    (void)unused;
    int wrong = 0;
    for (int i = 0; i < 4; i++) wrong += lock_unlock(&kinds[i]) != 0;
    wrong += pthread_rwlock_rdlock(&rwlock) != 0 || pthread_rwlock_unlock(&rwlock) != 0;
    wrong += pthread_rwlock_wrlock(&rwlock) != 0 || pthread_rwlock_unlock(&rwlock) != 0;
    wrong += pthread_spin_lock(&spin) != 0 || pthread_spin_unlock(&spin) != 0;
    struct timespec soon = after_ms(CLOCK_REALTIME, 2);
    pthread_mutex_lock(&prepared);
    wrong += pthread_cond_timedwait(&cond, &prepared, &soon) != ETIMEDOUT;
    pthread_mutex_unlock(&prepared);
    turns = 0;
    crew(2, count_turn);
    return wrong + (turns != 2 * rounds);
}

static void from_a_quiet_process(void) {
    VALUE(IN_CHILD(use_everything, NULL), FORK ".quiet.child");
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&kinds[i]);
        CODE(IN_CHILD(probe, &kinds[i]), FORK ".held.%s.trylock-in-child", MUTEX_KINDS[i].name);
        CODE(IN_CHILD(pthread_mutex_unlock, &kinds[i]), FORK ".held.%s.unlock-in-child", MUTEX_KINDS[i].name);
        CODE(pthread_mutex_unlock(&kinds[i]), FORK ".held.%s.unlock-in-parent", MUTEX_KINDS[i].name);
        CODE(probe(&kinds[i]), FORK ".held.%s.free-in-parent", MUTEX_KINDS[i].name);
    }
    pthread_rwlock_wrlock(&rwlock);
    CODE(IN_CHILD(pthread_rwlock_tryrdlock, &rwlock), FORK ".written.tryrdlock-in-child");
    pthread_rwlock_unlock(&rwlock);
}

/* Threads keep locks busy while others are forked off. None reads at that instant: the child would
 * wait for a reader that it does not have. */
static void keep_busy(long index) {
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        pthread_mutex_t *mutex = index % 2 ? &prepared : &busy;
        pthread_mutex_lock(mutex);
        if (mutex == &prepared) {
            pthread_rwlock_rdlock(&rwlock);
            pthread_rwlock_unlock(&rwlock);
        }
        pthread_mutex_unlock(mutex);
        struct timespec moment = {0, 20000};
        nanosleep(&moment, NULL);
    }
}

static int wait_in_background(void *unused) {
    (void)unused;
    pthread_mutex_lock(&busy);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) pthread_cond_wait(&waited_on, &busy);
    pthread_mutex_unlock(&busy);
    return 0;
}

static void *busy_main(void *index) {
    keep_busy((long)index);
    return NULL;
}

static void from_a_busy_process(void) {
    pthread_t threads[2];
    struct other waiter;
    stop = 0;
    begin(&waiter, wait_in_background, NULL);
    for (long i = 0; i < 2; i++) NEED(pthread_create(&threads[i], NULL, busy_main, (void *)i) == 0);
    int good = 0, forks = scaled(30);
    for (int i = 0; i < forks; i++) good += IN_CHILD(use_everything, NULL) == 0;
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    pthread_mutex_lock(&busy);
    pthread_cond_broadcast(&waited_on);
    pthread_mutex_unlock(&busy);
    CODE(finish(&waiter), FORK ".busy.waiter-in-parent");
    HOLDS(good == forks, FORK ".busy.children");
    VALUE(use_everything(NULL), FORK ".busy.parent-after");
}

static int fork_again(void *unused) {
    (void)unused;
    return use_everything(NULL) + IN_CHILD(use_everything, NULL) * 10;
}

static int fork_in_thread(void *unused) {
    (void)unused;
    return IN_CHILD(fork_again, NULL);
}

int main(void) {
    rounds = scaled(50);
    for (int i = 0; i < 4; i++) make_mutex_of_type(&kinds[i], MUTEX_KINDS[i].type);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    from_a_quiet_process();
    CODE(pthread_atfork(before_fork, after_fork, after_fork), FORK ".atfork-locks");
    CODE(pthread_atfork(first_prepares, first_in_parent, NULL), FORK ".atfork-first");
    CODE(pthread_atfork(second_prepares, second_in_parent, NULL), FORK ".atfork-second");
    VALUE(IN_CHILD(use_everything, NULL), FORK ".atfork.child");
    for (int i = 0; i < order_length; i++) VALUE(order[i], FORK ".atfork.order-%d", i);
    CODE(probe(&prepared), FORK ".atfork.free-in-parent");
    from_a_busy_process();
    VALUE(IN_CHILD(fork_again, NULL), FORK ".child-of-child");
    VALUE(ELSEWHERE(fork_in_thread, NULL), FORK ".from-a-thread");
    VALUE(system("exit 3") >> 8, FORK ".system");
    return 0;
}
