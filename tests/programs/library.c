/* A library for others to load at run time: it locks in its constructor, its destructor, and when
   called. */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int calls;

__attribute__((constructor)) static void loaded(void) {
    pthread_mutex_lock(&mutex);
    calls = 1000;
    pthread_mutex_unlock(&mutex);
}

__attribute__((destructor)) static void unloaded(void) {
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_destroy(&mutex);
}

int library_call(void) {
    pthread_rwlock_rdlock(&rwlock);
    pthread_mutex_lock(&mutex);
    int mine = ++calls;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_unlock(&rwlock);
    return mine;
}

int library_trylock(void) { return pthread_mutex_trylock(&mutex); }
pthread_mutex_t *library_mutex(void) { return &mutex; }
