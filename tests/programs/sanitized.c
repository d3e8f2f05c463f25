/* Compiled with sanitizers: every kind of lock excludes and orders, as ThreadSanitizer sees it;
 * with an argument, it has a data race, which is to be found. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

enum { THREADS = 4, TURNS = 500 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static long by_mutex, by_rwlock, by_spin, arrived, racy;
static int races;

static void *work(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    arrived++;
    pthread_cond_broadcast(&cond);
    while (arrived < THREADS) pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&mutex);
        by_mutex++;
        pthread_mutex_unlock(&mutex);
        pthread_rwlock_wrlock(&rwlock);
        by_rwlock++;
        pthread_rwlock_unlock(&rwlock);
        pthread_spin_lock(&spin);
        by_spin++;
        pthread_spin_unlock(&spin);
        if (races) racy++;
        free(malloc(100));
    }
    return NULL;
}

int main(int count, char **arguments) {
    (void)arguments;
    races = count > 1;
    pthread_t threads[THREADS];
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%ld %ld %ld\n", by_mutex, by_rwlock, by_spin);
    return 0;
}
