/* Many objects at a time: thousands held by one thread, left by threads that ended, taken hand over
 * hand, short-lived. A lock that keeps a record for each acquisition has to have enough of them,
 * and to get them back. */
#include "case.h"

enum { HELD = 5000, CHAIN = 40 };

static pthread_mutex_t held[HELD], chain[CHAIN];
static pthread_rwlock_t read_locks[HELD];
static long visits[CHAIN], rounds;

static int count_busy(void *unused) {
    (void)unused;
    int busy = 0;
    for (int i = 0; i < HELD; i++) busy += probe(&held[i]) == EBUSY;
    return busy;
}

static void one_thread_holds_all(void) {
    int good = 0;
    for (int i = 0; i < HELD; i++) good += pthread_mutex_lock(&held[i]) == 0;
    VALUE(good, "objects.all-locked");
    VALUE(elsewhere(count_busy, NULL), "objects.all-busy-elsewhere");
    /* Every other one in the order of locking, the rest in reverse. */
    good = 0;
    for (int i = 0; i < HELD; i += 2) good += pthread_mutex_unlock(&held[i]) == 0;
    VALUE(elsewhere(count_busy, NULL), "objects.half-busy-elsewhere");
    for (int i = HELD - 1; i > 0; i -= 2) good += pthread_mutex_unlock(&held[i]) == 0;
    VALUE(good, "objects.all-unlocked");
    VALUE(elsewhere(count_busy, NULL), "objects.none-busy-elsewhere");
}

static void one_thread_reads_all(void) {
    int good = 0, writable = 0;
    for (int i = 0; i < HELD; i++) good += pthread_rwlock_rdlock(&read_locks[i]) == 0;
    for (int i = 0; i < HELD; i++) writable += pthread_rwlock_trywrlock(&read_locks[i]) == 0;
    for (int i = 0; i < HELD; i++) good += pthread_rwlock_unlock(&read_locks[i]) == 0;
    VALUE(good, "objects.all-read-and-left");
    VALUE(writable, "objects.none-writable-meanwhile");
}

/* Each thread ends with some mutexes locked, and somebody else unlocks them. */
static int lock_and_leave(void *first) {
    int code = 0;
    for (int i = 0; i < 10; i++) code += pthread_mutex_lock((pthread_mutex_t *)first + i);
    return code;
}

static void left_by_threads_that_ended(void) {
    int good = 0;
    for (int i = 0; i < HELD; i += 10) good += elsewhere(lock_and_leave, &held[i]) == 0;
    VALUE(good, "objects.left.threads");
    VALUE(count_busy(NULL), "objects.left.busy");
    for (int i = 0; i < HELD; i++) pthread_mutex_unlock(&held[i]);
    VALUE(count_busy(NULL), "objects.left.busy-after-unlock");
}

/* Along a chain, each link locked before the one behind is released, so that no thread overtakes. */
static void walk(long index) {
    (void)index;
    for (long round = 0; round < rounds; round++) {
        pthread_mutex_lock(&chain[0]);
        for (int link = 0; link < CHAIN; link++) {
            visits[link]++;
            if (link + 1 < CHAIN) pthread_mutex_lock(&chain[link + 1]);
            pthread_mutex_unlock(&chain[link]);
        }
    }
}

static void hand_over_hand(void) {
    rounds = scaled(50);
    crew(4, walk);
    int complete = 0;
    for (int link = 0; link < CHAIN; link++) complete += visits[link] == 4 * rounds;
    VALUE(complete, "objects.hand-over-hand.links-complete");
}

/* Programs make mutexes on their stacks and in freed memory, and destroy few of them. */
static void short_lived(long index) {
    (void)index;
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
        if (lock_unlock(&mutex) != 0 || pthread_rwlock_rdlock(&lock) != 0 || pthread_rwlock_unlock(&lock) != 0) return;
        if (i % 2) pthread_mutex_destroy(&mutex);
    }
    __atomic_add_fetch(&visits[0], 1, __ATOMIC_RELAXED);
}

int main(void) {
    one_thread_holds_all();
    one_thread_reads_all();
    left_by_threads_that_ended();
    hand_over_hand();
    visits[0] = 0;
    crew(3, short_lived);
    VALUE(visits[0], "objects.short-lived.threads");
    return 0;
}
