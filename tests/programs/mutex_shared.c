/* Mutexes in memory that processes share, across fork and across two mappings of one file. */
#include "case.h"

struct page {
    pthread_mutex_t mutex;
    long counted;
    int told;
};

static int lock_elsewhere(void *mutex) { return lock_unlock(mutex); }

static int count(void *argument) {
    struct page *page = argument;
    for (int i = 0; i < 3000; i++) {
        pthread_mutex_lock(&page->mutex);
        page->counted++;
        pthread_mutex_unlock(&page->mutex);
    }
    return 0;
}

static int timedlock_briefly(void *mutex) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 5);
    return pthread_mutex_timedlock(mutex, &soon);
}

/* Says that it holds the mutex, and releases it some time after it was told to. */
static int hold_until_told(void *argument) {
    struct page *page = argument;
    int code = pthread_mutex_lock(&page->mutex);
    __atomic_store_n(&page->told, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&page->told, __ATOMIC_ACQUIRE) != 2) pause_ms(1);
    pause_ms(5);
    pthread_mutex_unlock(&page->mutex);
    return code;
}

static void across_processes(const char *name, struct page *page, struct page *seen_by_child) {
    CODE(pthread_mutex_lock(&page->mutex), "shared.%s.lock", name);
    CODE(IN_CHILD(pthread_mutex_trylock, &seen_by_child->mutex), "shared.%s.trylock-in-child", name);
    CODE(IN_CHILD(timedlock_briefly, &seen_by_child->mutex), "shared.%s.timedlock-in-child", name);
    CODE(pthread_mutex_unlock(&page->mutex), "shared.%s.unlock", name);
    CODE(IN_CHILD(lock_elsewhere, &seen_by_child->mutex), "shared.%s.lock-in-child", name);

    page->told = 0;
    pid_t child = fork();
    if (child == 0) _exit(hold_until_told(seen_by_child));
    while (!__atomic_load_n(&page->told, __ATOMIC_ACQUIRE)) pause_ms(1);
    CODE(pthread_mutex_trylock(&page->mutex), "shared.%s.held-by-child", name);
    __atomic_store_n(&page->told, 2, __ATOMIC_RELEASE);
    CODE(pthread_mutex_lock(&page->mutex), "shared.%s.lock-after-child", name);
    CODE(pthread_mutex_unlock(&page->mutex), "shared.%s.unlock-after-child", name);
    waitpid(child, NULL, 0);

    page->counted = 0;
    pid_t children[3];
    for (int i = 0; i < 3; i++)
        if ((children[i] = fork()) == 0) _exit(count(seen_by_child));
    count(page);
    for (int i = 0; i < 3; i++) waitpid(children[i], NULL, 0);
    VALUE(page->counted, "shared.%s.counted", name);
}

int main(void) {
    for EACH(kind, MUTEX_KINDS)
        for (int protocol = 0; protocol <= 1; protocol++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", kind->name, protocol ? ".inherit" : "");
            struct page *page = shared_memory(4096);
            make_mutex(&page->mutex, kind->type, PTHREAD_PROCESS_SHARED, PTHREAD_MUTEX_STALLED, protocol);
            across_processes(name, page, page);
            CODE(pthread_mutex_destroy(&page->mutex), "shared.%s.destroy", name);
        }
    int file = memfd_create("page", MFD_CLOEXEC);
    NEED(file >= 0 && ftruncate(file, 4096) == 0);
    struct page *one = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    struct page *two = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    NEED(one != MAP_FAILED && two != MAP_FAILED);
    make_mutex(&one->mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
    across_processes("two-mappings", one, two);
    CODE(pthread_mutex_lock(&one->mutex), "shared.alias.lock");
    CODE(pthread_mutex_trylock(&two->mutex), "shared.alias.trylock");
    CODE(pthread_mutex_unlock(&two->mutex), "shared.alias.unlock");
    CODE(pthread_mutex_trylock(&one->mutex), "shared.alias.trylock-after");
    return 0;
}
