/* Condition variables and mutexes of different sorts together: process-shared, robust and
 * priority-inheriting ones belong to glibc, private ones to the library under test, and a wait uses
 * both. */
#include "case.h"

struct page {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int ready, waiting, turns;
};

struct sort {
    const char *name;
    int shared, robust, protocol;
};

static const struct sort SORTS[] = {
    {"private", 0, 0, 0},        {"shared", 1, 0, 0},        {"robust", 0, 1, 0},
    {"inherit", 0, 0, 1},        {"shared-robust", 1, 1, 0}, {"robust-inherit", 0, 1, 1},
    {"shared-inherit", 1, 0, 1},
};

static int wait_for_ready(void *argument) {
    struct page *page = argument;
    int code = pthread_mutex_lock(&page->mutex);
    __atomic_add_fetch(&page->waiting, 1, __ATOMIC_ACQ_REL);
    while (!page->ready && code == 0) code = pthread_cond_wait(&page->cond, &page->mutex);
    pthread_mutex_unlock(&page->mutex);
    return code;
}

static int wait_timed_for_ready(void *argument) {
    struct page *page = argument;
    struct timespec later = after_ms(CLOCK_MONOTONIC, 20000);
    int code = pthread_mutex_lock(&page->mutex);
    __atomic_add_fetch(&page->waiting, 1, __ATOMIC_ACQ_REL);
    while (!page->ready && code == 0)
        code = pthread_cond_clockwait(&page->cond, &page->mutex, CLOCK_MONOTONIC, &later);
    pthread_mutex_unlock(&page->mutex);
    return code;
}

static void until_waiting(struct page *page, int count) {
    while (__atomic_load_n(&page->waiting, __ATOMIC_ACQUIRE) < count) pause_ms(1);
}

static void set_ready(const char *name, struct page *page, bool all) {
    pthread_mutex_lock(&page->mutex);
    page->ready = 1;
    CODE(all ? pthread_cond_broadcast(&page->cond) : pthread_cond_signal(&page->cond), "%s.%s", name,
         all ? "broadcast" : "signal");
    pthread_mutex_unlock(&page->mutex);
}

static void between_threads(const char *name, struct page *page) {
    struct other waiters[3];
    page->ready = page->waiting = 0;
    begin(&waiters[0], wait_for_ready, page);
    until_waiting(page, 1);
    set_ready(name, page, false);
    CODE(finish(&waiters[0]), "%s.signalled", name);
    page->ready = page->waiting = 0;
    for (int i = 0; i < 3; i++) begin(&waiters[i], i == 1 ? wait_timed_for_ready : wait_for_ready, page);
    until_waiting(page, 3);
    set_ready(name, page, true);
    for (int i = 0; i < 3; i++) CODE(finish(&waiters[i]), "%s.broadcast-to-%d", name, i);
}

static void between_processes(const char *name, struct page *page) {
    page->ready = page->waiting = 0;
    pid_t children[2];
    for (int i = 0; i < 2; i++)
        if ((children[i] = fork()) == 0) _exit(i ? wait_for_ready(page) : wait_timed_for_ready(page));
    until_waiting(page, 2);
    char label[128];
    snprintf(label, sizeof label, "%s.processes", name);
    set_ready(label, page, true);
    for (int i = 0; i < 2; i++) {
        int status = -1;
        waitpid(children[i], &status, 0);
        VALUE(status, "%s.processes.child-%d", name, i);
    }
}

static void errors(const char *name, struct page *page, const struct sort *sort) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 5), invalid = {5, 1000000000};
    pthread_mutex_lock(&page->mutex);
    CODE(pthread_cond_timedwait(&page->cond, &page->mutex, &invalid), "%s.invalid", name);
    CODE(pthread_cond_timedwait(&page->cond, &page->mutex, &soon), "%s.times-out", name);
    CODE(ELSEWHERE(pthread_mutex_trylock, &page->mutex), "%s.mutex-held-after-timeout", name);
    CODE(pthread_mutex_unlock(&page->mutex), "%s.unlock", name);
    if (sort->robust || sort->protocol)
        CODE(pthread_cond_wait(&page->cond, &page->mutex), "%s.not-owned", name);
    CODE(pthread_mutex_trylock(&page->mutex), "%s.usable-after", name);
    pthread_mutex_unlock(&page->mutex);
}

/* Two threads hand a turn to and fro, so that each wait and each wake-up is really needed. */
static struct page *table;
static int rounds;

static void take_turns(long index) {
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&table->mutex);
        while (table->turns % 2 != index) pthread_cond_wait(&table->cond, &table->mutex);
        table->turns++;
        pthread_cond_signal(&table->cond);
        pthread_mutex_unlock(&table->mutex);
    }
}

static int lock_signal_and_die(void *argument) {
    struct page *page = argument;
    pthread_mutex_lock(&page->mutex);
    page->ready = 1;
    pthread_cond_signal(&page->cond);
    return 0;
}

static int consistent_code = -7, unlock_code = -7;

static int wait_and_mend(void *argument) {
    struct page *page = argument;
    pthread_mutex_lock(&page->mutex);
    __atomic_add_fetch(&page->waiting, 1, __ATOMIC_ACQ_REL);
    int code = pthread_cond_wait(&page->cond, &page->mutex);
    consistent_code = pthread_mutex_consistent(&page->mutex);
    unlock_code = pthread_mutex_unlock(&page->mutex);
    return code;
}

/* The signaller dies with the mutex: the waiter's return says so. */
static void owner_dies_during_wait(const char *name, struct page *page) {
    struct other waiter;
    page->ready = page->waiting = 0;
    begin(&waiter, wait_and_mend, page);
    until_waiting(page, 1);
    CODE(ELSEWHERE(lock_signal_and_die, page), "%s.owner-dies", name);
    CODE(finish(&waiter), "%s.wait-says", name);
    CODE(consistent_code, "%s.heir.consistent", name);
    CODE(unlock_code, "%s.heir.unlock", name);
    CODE(probe(&page->mutex), "%s.mutex-after", name);
}

int main(void) {
    rounds = scaled(100);
    for EACH(sort, SORTS)
        for (int shared_cond = 0; shared_cond <= 1; shared_cond++) {
            char name[100];
            snprintf(name, sizeof name, "mixed.%s-mutex.%s-cond", sort->name, shared_cond ? "shared" : "private");
            struct page *page = table = shared_memory(4096);
            make_mutex(&page->mutex, PTHREAD_MUTEX_NORMAL, sort->shared, sort->robust, sort->protocol);
            make_cond(&page->cond, shared_cond, CLOCK_REALTIME);
            between_threads(name, page);
            if (sort->shared && shared_cond) between_processes(name, page);
            errors(name, page, sort);
            page->turns = 0;
            crew(2, take_turns);
            HOLDS(page->turns == 2 * rounds, "%s.turns", name);
            CODE(pthread_cond_destroy(&page->cond), "%s.cond-destroy", name);
            CODE(pthread_mutex_destroy(&page->mutex), "%s.mutex-destroy", name);
        }
    struct page *page = shared_memory(4096);
    make_mutex(&page->mutex, PTHREAD_MUTEX_NORMAL, 0, PTHREAD_MUTEX_ROBUST, 0);
    make_cond(&page->cond, 0, CLOCK_REALTIME);
    owner_dies_during_wait("owner-dead", page);
    return 0;
}
