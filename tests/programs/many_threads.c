/* Twenty thousand short threads that lock, wait and end: nothing may be used up, and memory stays
   flat. */
#include "case.h"

enum { AT_ONCE = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long counted, waiting, generation;

static long resident_kb(void) {
    char text[4096];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    char *line = strstr(text, "VmRSS:");
    return line ? atol(line + 6) : 0;
}

static void *live_shortly(void *index) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    lock_unlock(&own);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_lock(&mutex);
    counted++;
    if ((long)index % 4 == 0) {
        struct timespec past = {1, 0};
        pthread_cond_timedwait(&cond, &mutex, &past);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void live(int count) {
    pthread_t threads[AT_ONCE];
    for (int i = 0; i < count; i += AT_ONCE) {
        for (long t = 0; t < AT_ONCE; t++) NEED(pthread_create(&threads[t], NULL, live_shortly, (void *)t) == 0);
        for (int t = 0; t < AT_ONCE; t++) pthread_join(threads[t], NULL);
    }
}

static void *wait_for_generation(void *unused) {
    pthread_mutex_lock(&mutex);
    waiting++;
    long mine = generation;
    while (generation == mine) pthread_cond_wait(&cond, &mutex);
    waiting--;
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* Many at the same time, all in one wait, all woken by one broadcast. */
static void all_at_once(int count) {
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    waiting = 0;
    for (int i = 0; i < count; i++) NEED(pthread_create(&threads[i], &attributes, wait_for_generation, NULL) == 0);
    for (long inside = 0; inside < count; pause_ms(1)) {
        pthread_mutex_lock(&mutex);
        inside = waiting;
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    generation++;
    CODE(pthread_cond_broadcast(&cond), "threads.%d-at-once.broadcast", count);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    VALUE(waiting, "threads.%d-at-once.left-waiting", count);
    free(threads);
}

int main(void) {
    /* Statistics have a record for each of the first 32,768 locks, of which each thread brings one:
       1.4 MB more. */
    live(18000);
    long before = resident_kb();
    live(6000);
    long grown = resident_kb() - before;
    VALUE(counted, "threads.lived");
    HOLDS(grown < 4096, "threads.memory-grows-by-less-than-4-MB");
    if (grown >= 4096) fprintf(stderr, "resident memory grew by %ld kB\n", grown);
    all_at_once(1000);
    all_at_once(3000);
    CODE(probe(&mutex), "threads.mutex-free-after");
    CODE(pthread_cond_destroy(&cond), "threads.cond-destroy");
    return 0;
}
