/* Many threads and processes at a reader-writer lock. */
#include "case.h"

static pthread_rwlock_t lock;
static long readers_inside, writers_inside, wrong, value_a, value_b, rounds;

static void make(pthread_rwlock_t *lock, int kind, int shared) {
    pthread_rwlockattr_t a;
    pthread_rwlockattr_init(&a);
    NEED(pthread_rwlockattr_setkind_np(&a, kind) == 0);
    NEED(pthread_rwlockattr_setpshared(&a, shared) == 0);
    NEED(pthread_rwlock_init(lock, &a) == 0);
}

/* All eight have to be inside at once before one goes: an exclusive lock would never let them. */
static void meet_inside(long index) {
    (void)index;
    NEED(pthread_rwlock_rdlock(&lock) == 0);
    __atomic_add_fetch(&readers_inside, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&readers_inside, __ATOMIC_ACQUIRE) < 8) sched_yield();
    pthread_rwlock_unlock(&lock);
}

static void meet_inside_each_way(long index) {
    struct timespec later = after_ms(CLOCK_REALTIME, 20000), mono = after_ms(CLOCK_MONOTONIC, 20000);
    int code = index % 4 == 0   ? pthread_rwlock_rdlock(&lock)
               : index % 4 == 1 ? pthread_rwlock_tryrdlock(&lock)
               : index % 4 == 2 ? pthread_rwlock_timedrdlock(&lock, &later)
                                : pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &mono);
    NEED(code == 0);
    __atomic_add_fetch(&readers_inside, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&readers_inside, __ATOMIC_ACQUIRE) < 8) sched_yield();
    pthread_rwlock_unlock(&lock);
}

static void write_once(void) {
    if (__atomic_add_fetch(&writers_inside, 1, __ATOMIC_ACQ_REL) != 1) wrong++;
    value_a++;
    if (__atomic_load_n(&readers_inside, __ATOMIC_ACQUIRE) != 0) wrong++;
    value_b++;
    __atomic_sub_fetch(&writers_inside, 1, __ATOMIC_ACQ_REL);
}

static void read_once(void) {
    __atomic_add_fetch(&readers_inside, 1, __ATOMIC_ACQ_REL);
    if (__atomic_load_n(&writers_inside, __ATOMIC_ACQUIRE) != 0 || value_a != value_b)
        __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&readers_inside, 1, __ATOMIC_ACQ_REL);
}

/* Threads 0 and 1 write, the others read, through every entry point in turn. */
static void mix(long index) {
    for (long i = 0; i < rounds; i++) {
        struct timespec later = after_ms(CLOCK_REALTIME, 30000);
        bool write = index < 2;
        switch (i % 3) {
            case 0: NEED((write ? pthread_rwlock_wrlock(&lock) : pthread_rwlock_rdlock(&lock)) == 0); break;
            case 1:
                while ((write ? pthread_rwlock_trywrlock(&lock) : pthread_rwlock_tryrdlock(&lock)) != 0) sched_yield();
                break;
            default:
                NEED((write ? pthread_rwlock_timedwrlock(&lock, &later) : pthread_rwlock_timedrdlock(&lock, &later)) == 0);
        }
        write ? write_once() : read_once();
        pthread_rwlock_unlock(&lock);
    }
}

/* Readers that never leave the lock empty: a nonrecursive writer preference has to let the writer
   in. */
static int stop;

static int read_on_and_on(void *unused) {
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        pthread_rwlock_rdlock(&lock);
        sched_yield();
        pthread_rwlock_unlock(&lock);
    }
    return 0;
}

static void writer_among_readers(const char *name) {
    struct other readers[2];
    stop = 0;
    for (int i = 0; i < 2; i++) {
        readers[i] = (struct other){};
        readers[i].call = read_on_and_on;
        NEED(pthread_create(&readers[i].thread, NULL, other_main, &readers[i]) == 0);
    }
    for (int i = 0; i < 5; i++) {
        NEED(pthread_rwlock_wrlock(&lock) == 0);
        pthread_rwlock_unlock(&lock);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) finish(&readers[i]);
    HOLDS(true, "crowd.%s.writer-gets-in-among-readers", name);
}

static int write_for_40_ms(void *unused) {
    (void)unused;
    struct timespec soon = after_ms(CLOCK_REALTIME, 40);
    return pthread_rwlock_timedwrlock(&lock, &soon);
}

static int read_once_blocking(void *unused) {
    (void)unused;
    int code = pthread_rwlock_rdlock(&lock);
    return code ? code : pthread_rwlock_unlock(&lock);
}

/* A reader that waits behind a waiting writer goes on when that one gives up, though no thread
   unlocks. */
static void reader_behind_a_writer_that_gives_up(const char *name) {
    struct other writer, reader;
    pthread_rwlock_rdlock(&lock);
    begin(&writer, write_for_40_ms, NULL);
    begin(&reader, read_once_blocking, NULL);
    CODE(finish(&writer), "crowd.%s.writer-gives-up", name);
    CODE(finish(&reader), "crowd.%s.reader-behind-it-goes-on", name);
    CODE(pthread_rwlock_unlock(&lock), "crowd.%s.reader-before-it-unlocks", name);
    CODE(pthread_rwlock_trywrlock(&lock), "crowd.%s.free-after", name);
    pthread_rwlock_unlock(&lock);
}

static void deep_reading(const char *name) {
    int good = 0;
    for (int i = 0; i < 1000; i++) good += pthread_rwlock_rdlock(&lock) == 0;
    CODE(pthread_rwlock_trywrlock(&lock), "crowd.%s.deep.trywrlock", name);
    for (int i = 0; i < 999; i++) good += pthread_rwlock_unlock(&lock) == 0;
    CODE(pthread_rwlock_trywrlock(&lock), "crowd.%s.deep.trywrlock-at-1", name);
    good += pthread_rwlock_unlock(&lock) == 0;
    VALUE(good, "crowd.%s.deep.good", name);
    CODE(pthread_rwlock_trywrlock(&lock), "crowd.%s.deep.trywrlock-at-0", name);
    pthread_rwlock_unlock(&lock);
}

struct last_user {
    pthread_rwlock_t lock;
    int users;
};

static int leave(void *argument) {
    struct last_user *shared = argument;
    pthread_rwlock_rdlock(&shared->lock);
    pthread_rwlock_unlock(&shared->lock);
    pthread_rwlock_wrlock(&shared->lock);
    bool last = --shared->users == 0;
    pthread_rwlock_unlock(&shared->lock);
    if (last) munmap(shared, 4096);
    return 0;
}

/* The last thread unmaps the memory: an unlock that touched it after letting go would crash. */
static void memory_goes_with_the_last_user(const char *name, int kind) {
    for (int i = 0; i < 100; i++) {
        struct last_user *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        NEED(shared != MAP_FAILED);
        make(&shared->lock, kind, PTHREAD_PROCESS_PRIVATE);
        shared->users = 2;
        struct other other = {};
        other.call = leave;
        other.object = shared;
        NEED(pthread_create(&other.thread, NULL, other_main, &other) == 0);
        leave(shared);
        finish(&other);
    }
    HOLDS(true, "crowd.%s.memory-unmapped-by-last-user", name);
}

/* A thread that ends while it reads leaves the lock read-locked. */
static void reader_exits(const char *name) {
    CODE(ELSEWHERE(pthread_rwlock_rdlock, &lock), "crowd.%s.reader-exits", name);
    CODE(pthread_rwlock_trywrlock(&lock), "crowd.%s.reader-exited.trywrlock", name);
    CODE(pthread_rwlock_rdlock(&lock), "crowd.%s.reader-exited.rdlock", name);
    CODE(pthread_rwlock_unlock(&lock), "crowd.%s.reader-exited.unlock", name);
    CODE(pthread_rwlock_unlock(&lock), "crowd.%s.reader-exited.unlock-for-it", name);
    CODE(pthread_rwlock_trywrlock(&lock), "crowd.%s.reader-exited.free-after", name);
    pthread_rwlock_unlock(&lock);
}

struct page {
    pthread_rwlock_t lock;
    long counted;
};

static int count(void *argument) {
    struct page *page = argument;
    for (int i = 0; i < 500; i++) {
        pthread_rwlock_wrlock(&page->lock);
        page->counted++;
        pthread_rwlock_unlock(&page->lock);
        pthread_rwlock_rdlock(&page->lock);
        pthread_rwlock_unlock(&page->lock);
    }
    return 0;
}

static void across_processes(const char *name, int kind) {
    struct page *page = shared_memory(4096);
    make(&page->lock, kind, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_wrlock(&page->lock);
    CODE(IN_CHILD(pthread_rwlock_tryrdlock, &page->lock), "crowd.%s.shared.written.tryrdlock", name);
    CODE(IN_CHILD(pthread_rwlock_trywrlock, &page->lock), "crowd.%s.shared.written.trywrlock", name);
    pthread_rwlock_unlock(&page->lock);
    CODE(IN_CHILD(pthread_rwlock_rdlock, &page->lock), "crowd.%s.shared.child-reads-and-exits", name);
    CODE(pthread_rwlock_tryrdlock(&page->lock), "crowd.%s.shared.read-beside-the-dead", name);
    CODE(pthread_rwlock_trywrlock(&page->lock), "crowd.%s.shared.write-beside-the-dead", name);
    make(&page->lock, kind, PTHREAD_PROCESS_SHARED);
    pid_t children[3];
    for (int i = 0; i < 3; i++)
        if ((children[i] = fork()) == 0) _exit(count(page));
    count(page);
    for (int i = 0; i < 3; i++) waitpid(children[i], NULL, 0);
    VALUE(page->counted, "crowd.%s.shared.counted", name);
    CODE(pthread_rwlock_destroy(&page->lock), "crowd.%s.shared.destroy", name);
}

int main(void) {
    const struct {
        const char *name;
        int kind;
    } kinds[] = {{"prefer-reader", PTHREAD_RWLOCK_PREFER_READER_NP},
                 {"prefer-writer", PTHREAD_RWLOCK_PREFER_WRITER_NP},
                 {"prefer-writer-nonrecursive", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP}};
    for EACH(kind, kinds) {
        make(&lock, kind->kind, PTHREAD_PROCESS_PRIVATE);
        readers_inside = 0;
        crew(8, meet_inside);
        HOLDS(readers_inside == 8, "crowd.%s.eight-readers-at-once", kind->name);
        readers_inside = 0;
        crew(8, meet_inside_each_way);
        HOLDS(readers_inside == 8, "crowd.%s.eight-readers-at-once-each-way", kind->name);
        CODE(pthread_rwlock_trywrlock(&lock), "crowd.%s.all-have-left", kind->name);
        CODE(pthread_rwlock_unlock(&lock), "crowd.%s.unlock", kind->name);

        readers_inside = writers_inside = wrong = value_a = value_b = 0;
        rounds = scaled(400);
        crew(5, mix);
        HOLDS(wrong == 0, "crowd.%s.mix.nobody-inside-with-a-writer", kind->name);
        HOLDS(value_a == 2 * rounds && value_b == value_a, "crowd.%s.mix.nothing-lost", kind->name);
        if (kind->kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) {
            writer_among_readers(kind->name);
            reader_behind_a_writer_that_gives_up(kind->name);
        }
        deep_reading(kind->name);
        memory_goes_with_the_last_user(kind->name, kind->kind);
        reader_exits(kind->name);
        CODE(pthread_rwlock_destroy(&lock), "crowd.%s.destroy", kind->name);
        across_processes(kind->name, kind->kind);
    }
    return 0;
}
