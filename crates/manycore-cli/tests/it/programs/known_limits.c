// Programs whose locks, or whose threads by waiting for each other, let them get faster by a known
// factor at most. All times are CPU time of the calling thread, so that a busy machine changes
// nothing.
#include <pthread.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;

static void work(long us)
{
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < us * 1000);
}

static void *hot(void *unused)
{
    for (int i = 0; i < 250; i++) {
        pthread_mutex_lock(&first);
        work(200);
        pthread_mutex_unlock(&first);
        for (int k = 0; k < 4; k++) {
            pthread_mutex_lock(&second);
            work(5);
            pthread_mutex_unlock(&second);
        }
    }
    return unused;
}

static void *half(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        pthread_mutex_lock(&first);
        work(30);
        pthread_mutex_unlock(&first);
        work(30);
    }
    return unused;
}

static void *rare(void *unused)
{
    for (int i = 0; i < 600; i++) {
        pthread_mutex_lock(&first);
        work(1);
        pthread_mutex_unlock(&first);
        work(300);
    }
    return unused;
}

static void *starved(void *unused)
{
    for (int i = 0; i < 150; i++) {
        pthread_mutex_lock(&first);
        work(1);
        pthread_mutex_unlock(&first);
        work(300);
    }
    return unused;
}

static void *rwlock(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        if (i % 2)
            pthread_rwlock_rdlock(&shared);
        else
            pthread_rwlock_wrlock(&shared);
        work(30);
        pthread_rwlock_unlock(&shared);
        work(30);
    }
    return unused;
}

// Items between two stages of a pipeline.
static struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int items;
} queues[2] = {{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}, {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}};

static void move(struct queue *queue, int by)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->items + by < 0 || queue->items + by > 4)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    queue->items += by;
    work(2);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

// Each item takes 50, 300 and 50 us of three threads: the second is never idle, and no thread is
// faster than it.
static void *pipeline(void *unused)
{
    static int threads;
    int stage = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 800; i++) {
        if (stage > 0)
            move(&queues[stage - 1], -1);
        work(stage == 1 ? 300 : 50);
        if (stage < 2)
            move(&queues[stage], 1);
    }
    return unused;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    void *(*body)(void *) = !strcmp(what, "hot")       ? hot
                            : !strcmp(what, "half")    ? half
                            : !strcmp(what, "rare")    ? rare
                            : !strcmp(what, "starved") ? starved
                            : !strcmp(what, "rwlock")  ? rwlock
                            : !strcmp(what, "pipeline") ? pipeline
                                                        : 0;
    int threads = body == starved ? 16 : body == hot ? 4 : body == pipeline ? 3 : 2;
    pthread_t all[16];
    if (!body)
        return 2;
    for (int i = 0; i < threads; i++)
        pthread_create(&all[i], 0, body, 0);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], 0);
    return 0;
}
