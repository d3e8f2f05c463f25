/* Spin locks, private and in memory that processes share. */
#include "case.h"

struct page {
    uint32_t before;
    pthread_spinlock_t lock;
    uint32_t after;
    long counted;
};

static struct page *page;
static long rounds;

static int lock_and_leave(void *lock) {
    int code = pthread_spin_lock(lock);
    return code ? code : pthread_spin_unlock(lock);
}

static void count(long index) {
    (void)index;
    for (long i = 0; i < rounds; i++) {
        pthread_spin_lock(&page->lock);
        page->counted++;
        pthread_spin_unlock(&page->lock);
    }
}

static int count_in_child(void *unused) {
    (void)unused;
    count(0);
    return 0;
}

static void whole_life(const char *name, int shared) {
    page->before = page->after = 0xa5a5a5a5;
    CODE(pthread_spin_init(&page->lock, shared), "spin.%s.init", name);
    CODE(pthread_spin_lock(&page->lock), "spin.%s.lock", name);
    CODE(pthread_spin_trylock(&page->lock), "spin.%s.held.trylock", name);
    CODE(ELSEWHERE(pthread_spin_trylock, (void *)&page->lock), "spin.%s.held.trylock-elsewhere", name);
    struct other waiter;
    begin(&waiter, lock_and_leave, (void *)&page->lock);
    HOLDS(!is_done(&waiter), "spin.%s.held.waits", name);
    CODE(pthread_spin_unlock(&page->lock), "spin.%s.unlock", name);
    CODE(finish(&waiter), "spin.%s.waiter", name);
    CODE(pthread_spin_trylock(&page->lock), "spin.%s.free.trylock", name);
    CODE(ELSEWHERE(pthread_spin_trylock, (void *)&page->lock), "spin.%s.free.trylock-has-locked", name);
    CODE(pthread_spin_unlock(&page->lock), "spin.%s.free.unlock", name);
    page->counted = 0;
    crew(3, count);
    HOLDS(page->counted == 3 * rounds, "spin.%s.nothing-lost", name);
    CODE(pthread_spin_destroy(&page->lock), "spin.%s.destroy", name);
    HOLDS(page->before == 0xa5a5a5a5 && page->after == 0xa5a5a5a5, "spin.%s.neighbours-untouched", name);
}

static void across_processes(void) {
    CODE(pthread_spin_init(&page->lock, PTHREAD_PROCESS_SHARED), "spin.processes.init");
    CODE(pthread_spin_lock(&page->lock), "spin.processes.lock");
    CODE(IN_CHILD(pthread_spin_trylock, (void *)&page->lock), "spin.processes.trylock-in-child");
    CODE(pthread_spin_unlock(&page->lock), "spin.processes.unlock");
    CODE(IN_CHILD(lock_and_leave, (void *)&page->lock), "spin.processes.lock-in-child");
    page->counted = 0;
    pid_t children[2];
    for (int i = 0; i < 2; i++)
        if ((children[i] = fork()) == 0) _exit(count_in_child(NULL));
    count(0);
    for (int i = 0; i < 2; i++) waitpid(children[i], NULL, 0);
    HOLDS(page->counted == 3 * rounds, "spin.processes.nothing-lost");
}

int main(void) {
    page = shared_memory(4096);
    rounds = scaled(500);
    whole_life("private", PTHREAD_PROCESS_PRIVATE);
    whole_life("shared", PTHREAD_PROCESS_SHARED);
    CODE(pthread_spin_init(&page->lock, 77), "spin.init-with-nonsense");
    across_processes();
    return 0;
}
