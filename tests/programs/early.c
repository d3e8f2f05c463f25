/* Locks used before any library's constructor has run, in constructors, at exit, and in
 * destructors: the library under test may not have been initialised yet, or think that it is over
 * already. */
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long counted;

static int probe_rwlock(void *lock) {
    int code = pthread_rwlock_trywrlock(lock);
    if (code == 0) pthread_rwlock_unlock(lock);
    return code;
}

static void count(long index) {
    (void)index;
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex);
        counted++;
        pthread_mutex_unlock(&mutex);
    }
}

static void use(const char *when) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 2);
    CODE(pthread_mutex_lock(&mutex), "%s.lock", when);
    CODE(pthread_mutex_trylock(&mutex), "%s.trylock", when);
    CODE(pthread_mutex_timedlock(&mutex, &soon), "%s.timedlock", when);
    CODE(pthread_cond_timedwait(&cond, &mutex, &soon), "%s.timedwait", when);
    CODE(pthread_mutex_unlock(&mutex), "%s.unlock", when);
    CODE(pthread_mutex_lock(&recursive), "%s.recursive-lock", when);
    CODE(pthread_mutex_lock(&recursive), "%s.recursive-relock", when);
    CODE(pthread_mutex_unlock(&recursive), "%s.recursive-unlock", when);
    CODE(pthread_rwlock_rdlock(&rwlock), "%s.rdlock", when);
    CODE(ELSEWHERE(probe_rwlock, &rwlock), "%s.trywrlock-elsewhere", when);
    CODE(pthread_rwlock_unlock(&rwlock), "%s.rwlock-unlock", when);
    CODE(pthread_cond_broadcast(&cond), "%s.broadcast", when);
    CODE(ELSEWHERE(probe, &recursive), "%s.recursive-still-held", when);
    counted = 0;
    crew(3, count);
    VALUE(counted, "%s.counted", when);
}

static void before_all(void) { use("early.preinit"); }
__attribute__((section(".preinit_array"), used)) static void (*const before_all_entry)(void) = before_all;

__attribute__((constructor)) static void in_constructor(void) {
    CODE(pthread_mutex_unlock(&recursive), "early.constructor.unlock-from-preinit");
    use("early.constructor");
}

__attribute__((destructor)) static void in_destructor(void) { use("late.destructor"); }

static void at_exit(void) {
    CODE(pthread_mutex_unlock(&recursive), "late.at-exit.unlock-from-main");
    use("late.at-exit");
    CODE(pthread_mutex_unlock(&recursive), "late.at-exit.last-unlock");
}

static pthread_key_t key;
static int key_destructor_runs;

static void in_key_destructor(void *value) {
    key_destructor_runs += lock_unlock(&mutex) == 0 && pthread_rwlock_rdlock(&rwlock) == 0 && pthread_rwlock_unlock(&rwlock) == 0;
    if ((long)value > 1) pthread_setspecific(key, (void *)((long)value - 1));
}

static int set_key(void *unused) {
    (void)unused;
    return pthread_setspecific(key, (void *)3);
}

int main(void) {
    CODE(pthread_mutex_unlock(&recursive), "early.main.unlock-from-constructor");
    use("early.main");
    pthread_key_create(&key, in_key_destructor);
    CODE(ELSEWHERE(set_key, NULL), "early.key.set");
    VALUE(key_destructor_runs, "early.key.destructors-that-locked");
    atexit(at_exit);
    exit(0);
}
