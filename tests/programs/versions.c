/* A binary of any age binds to the same implementation: the functions under the symbol versions of
 * glibc before 2.34 and after it are called in one process, on the same objects. A library that
 * takes over one version only fails here. */
#include "case.h"

/* SAFETY: the assembly names a symbol's version; the declaration is the one that the version has in
   glibc. */
#define OLD(result, name, version, ...)              \
    extern result old_##name(__VA_ARGS__);           \
    __asm__(".symver old_" #name "," #name "@GLIBC_" version)

OLD(int, pthread_mutex_lock, "2.2.5", pthread_mutex_t *);
OLD(int, pthread_mutex_trylock, "2.2.5", pthread_mutex_t *);
OLD(int, pthread_mutex_timedlock, "2.2.5", pthread_mutex_t *, const struct timespec *);
OLD(int, pthread_mutex_unlock, "2.2.5", pthread_mutex_t *);
OLD(int, pthread_mutex_clocklock, "2.30", pthread_mutex_t *, clockid_t, const struct timespec *);
OLD(int, pthread_rwlock_rdlock, "2.2.5", pthread_rwlock_t *);
OLD(int, pthread_rwlock_wrlock, "2.2.5", pthread_rwlock_t *);
OLD(int, pthread_rwlock_tryrdlock, "2.2.5", pthread_rwlock_t *);
OLD(int, pthread_rwlock_trywrlock, "2.2.5", pthread_rwlock_t *);
OLD(int, pthread_rwlock_unlock, "2.2.5", pthread_rwlock_t *);
OLD(int, pthread_rwlock_timedrdlock, "2.2.5", pthread_rwlock_t *, const struct timespec *);
OLD(int, pthread_rwlock_timedwrlock, "2.2.5", pthread_rwlock_t *, const struct timespec *);
OLD(int, pthread_spin_lock, "2.2.5", pthread_spinlock_t *);
OLD(int, pthread_spin_trylock, "2.2.5", pthread_spinlock_t *);
OLD(int, pthread_spin_unlock, "2.2.5", pthread_spinlock_t *);
OLD(int, __pthread_mutex_lock, "2.2.5", pthread_mutex_t *);
OLD(int, __pthread_mutex_trylock, "2.2.5", pthread_mutex_t *);
OLD(int, __pthread_mutex_unlock, "2.2.5", pthread_mutex_t *);
OLD(int, __pthread_rwlock_rdlock, "2.2.5", pthread_rwlock_t *);
OLD(int, __pthread_rwlock_wrlock, "2.2.5", pthread_rwlock_t *);
OLD(int, __pthread_rwlock_tryrdlock, "2.2.5", pthread_rwlock_t *);
OLD(int, __pthread_rwlock_trywrlock, "2.2.5", pthread_rwlock_t *);
OLD(int, __pthread_rwlock_unlock, "2.2.5", pthread_rwlock_t *);
OLD(int, pthread_cond_wait, "2.3.2", pthread_cond_t *, pthread_mutex_t *);
OLD(int, pthread_cond_timedwait, "2.3.2", pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
OLD(int, pthread_cond_clockwait, "2.30", pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
OLD(int, pthread_cond_signal, "2.3.2", pthread_cond_t *);
OLD(int, pthread_cond_broadcast, "2.3.2", pthread_cond_t *);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static struct timespec past = {1, 0};
static int ready;

static void mutexes(void) {
    CODE(old_pthread_mutex_lock(&mutex), "versions.mutex.old-lock");
    CODE(pthread_mutex_trylock(&mutex), "versions.mutex.old-lock.new-trylock");
    CODE(old_pthread_mutex_trylock(&mutex), "versions.mutex.old-lock.old-trylock");
    CODE(pthread_mutex_timedlock(&mutex, &past), "versions.mutex.old-lock.new-timedlock");
    CODE(old_pthread_mutex_timedlock(&mutex, &past), "versions.mutex.old-lock.old-timedlock");
    CODE(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past), "versions.mutex.old-lock.new-clocklock");
    CODE(old_pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past), "versions.mutex.old-lock.old-clocklock");
    CODE(pthread_mutex_unlock(&mutex), "versions.mutex.new-unlock");
    CODE(old_pthread_mutex_trylock(&mutex), "versions.mutex.free.old-trylock");
    CODE(pthread_mutex_trylock(&mutex), "versions.mutex.old-trylock.new-trylock");
    CODE(old_pthread_mutex_unlock(&mutex), "versions.mutex.old-unlock");
    CODE(pthread_mutex_trylock(&mutex), "versions.mutex.free.new-trylock");
    CODE(old_pthread_mutex_trylock(&mutex), "versions.mutex.new-trylock.old-trylock");
    CODE(old_pthread_mutex_unlock(&mutex), "versions.mutex.new-trylock.old-unlock");
}

static void rwlocks(void) {
    CODE(old_pthread_rwlock_wrlock(&rwlock), "versions.rwlock.old-wrlock");
    CODE(pthread_rwlock_tryrdlock(&rwlock), "versions.rwlock.old-wrlock.new-tryrdlock");
    CODE(old_pthread_rwlock_tryrdlock(&rwlock), "versions.rwlock.old-wrlock.old-tryrdlock");
    CODE(pthread_rwlock_unlock(&rwlock), "versions.rwlock.new-unlock");
    CODE(pthread_rwlock_rdlock(&rwlock), "versions.rwlock.new-rdlock");
    CODE(old_pthread_rwlock_trywrlock(&rwlock), "versions.rwlock.new-rdlock.old-trywrlock");
    CODE(old_pthread_rwlock_rdlock(&rwlock), "versions.rwlock.new-rdlock.old-rdlock");
    CODE(old_pthread_rwlock_timedwrlock(&rwlock, &past), "versions.rwlock.read.old-timedwrlock");
    CODE(old_pthread_rwlock_timedrdlock(&rwlock, &past), "versions.rwlock.read.old-timedrdlock");
    for (int i = 0; i < 3; i++) CODE(old_pthread_rwlock_unlock(&rwlock), "versions.rwlock.old-unlock-%d", i);
    CODE(pthread_rwlock_trywrlock(&rwlock), "versions.rwlock.free.new-trywrlock");
    CODE(old_pthread_rwlock_unlock(&rwlock), "versions.rwlock.new-trywrlock.old-unlock");
}

/* glibc exports some functions under a second, older name; programs and libraries linked long ago
   use it. */
static void under_older_names(void) {
    CODE(old___pthread_mutex_lock(&mutex), "versions.older-name.mutex_lock");
    CODE(pthread_mutex_trylock(&mutex), "versions.older-name.mutex_lock.new-trylock");
    CODE(pthread_mutex_unlock(&mutex), "versions.older-name.mutex_lock.new-unlock");
    CODE(pthread_mutex_lock(&mutex), "versions.older-name.new-lock");
    CODE(old___pthread_mutex_trylock(&mutex), "versions.older-name.mutex_trylock");
    CODE(old___pthread_mutex_unlock(&mutex), "versions.older-name.mutex_unlock");
    CODE(probe(&mutex), "versions.older-name.mutex_unlock.free");
    CODE(old___pthread_rwlock_wrlock(&rwlock), "versions.older-name.rwlock_wrlock");
    CODE(pthread_rwlock_tryrdlock(&rwlock), "versions.older-name.rwlock_wrlock.new-tryrdlock");
    CODE(old___pthread_rwlock_tryrdlock(&rwlock), "versions.older-name.rwlock_tryrdlock");
    CODE(old___pthread_rwlock_unlock(&rwlock), "versions.older-name.rwlock_unlock");
    CODE(old___pthread_rwlock_rdlock(&rwlock), "versions.older-name.rwlock_rdlock");
    CODE(pthread_rwlock_trywrlock(&rwlock), "versions.older-name.rwlock_rdlock.new-trywrlock");
    CODE(old___pthread_rwlock_trywrlock(&rwlock), "versions.older-name.rwlock_trywrlock");
    CODE(pthread_rwlock_unlock(&rwlock), "versions.older-name.rwlock_rdlock.new-unlock");
    CODE(pthread_rwlock_trywrlock(&rwlock), "versions.older-name.free");
    CODE(pthread_rwlock_unlock(&rwlock), "versions.older-name.free.unlock");
}

static void spins(void) {
    pthread_spinlock_t spin;
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    CODE(old_pthread_spin_lock(&spin), "versions.spin.old-lock");
    CODE(pthread_spin_trylock(&spin), "versions.spin.old-lock.new-trylock");
    CODE(pthread_spin_unlock(&spin), "versions.spin.new-unlock");
    CODE(pthread_spin_lock(&spin), "versions.spin.new-lock");
    CODE(old_pthread_spin_trylock(&spin), "versions.spin.new-lock.old-trylock");
    CODE(old_pthread_spin_unlock(&spin), "versions.spin.old-unlock");
}

static int wait_new(void *unused) {
    (void)unused;
    int code = pthread_mutex_lock(&mutex);
    while (!ready && !code) code = pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    return code;
}

static int wait_old(void *unused) {
    (void)unused;
    int code = old_pthread_mutex_lock(&mutex);
    while (!ready && !code) code = old_pthread_cond_wait(&cond, &mutex);
    old_pthread_mutex_unlock(&mutex);
    return code;
}

static void conds(void) {
    const struct {
        const char *name;
        Call wait;
        int (*wake)(pthread_cond_t *);
    } pairs[] = {{"old-signal-new-wait", wait_new, old_pthread_cond_signal},
                 {"new-signal-old-wait", wait_old, pthread_cond_signal},
                 {"old-broadcast-new-wait", wait_new, old_pthread_cond_broadcast},
                 {"new-broadcast-old-wait", wait_old, pthread_cond_broadcast}};
    for EACH(pair, pairs) {
        struct other waiter;
        ready = 0;
        begin(&waiter, pair->wait, NULL);
        HOLDS(!is_done(&waiter), "versions.cond.%s.waits", pair->name);
        pthread_mutex_lock(&mutex);
        ready = 1;
        CODE(pair->wake(&cond), "versions.cond.%s.wake", pair->name);
        pthread_mutex_unlock(&mutex);
        CODE(finish(&waiter), "versions.cond.%s.waiter", pair->name);
    }
    pthread_mutex_lock(&mutex);
    CODE(old_pthread_cond_timedwait(&cond, &mutex, &past), "versions.cond.old-timedwait");
    CODE(old_pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &past), "versions.cond.old-clockwait");
    CODE(ELSEWHERE(probe, &mutex), "versions.cond.mutex-held");
    pthread_mutex_unlock(&mutex);
}

int main(void) {
    mutexes();
    rwlocks();
    under_older_names();
    spins();
    conds();
    return 0;
}
