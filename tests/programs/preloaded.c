/* A library to preload beside the one under test: its constructor uses locks, whichever of the two
   comes first. */
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void use(const char *when) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 2);
    CODE(pthread_mutex_lock(&mutex), "preloaded.%s.lock", when);
    CODE(ELSEWHERE(pthread_mutex_trylock, &mutex), "preloaded.%s.trylock-elsewhere", when);
    CODE(pthread_cond_timedwait(&cond, &mutex, &soon), "preloaded.%s.timedwait", when);
    CODE(pthread_mutex_unlock(&mutex), "preloaded.%s.unlock", when);
    CODE(pthread_rwlock_wrlock(&rwlock), "preloaded.%s.wrlock", when);
    CODE(ELSEWHERE(pthread_rwlock_tryrdlock, &rwlock), "preloaded.%s.tryrdlock-elsewhere", when);
    CODE(pthread_rwlock_unlock(&rwlock), "preloaded.%s.rwlock-unlock", when);
}

__attribute__((constructor)) static void loaded(void) { use("constructor"); }
__attribute__((destructor)) static void unloaded(void) { use("destructor"); }
