// Programs whose locks let them get faster by a known factor at most. All times are CPU time of the calling thread, so that a busy machine
// changes nothing: only `hot` holds its lock by the wall clock.
#include <pthread.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;

static void work_by(clockid_t clock, long ns)
{
    struct timespec from, now;
    clock_gettime(clock, &from);
    do
        clock_gettime(clock, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < ns);
}

static void work(long us)
{
    work_by(CLOCK_THREAD_CPUTIME_ID, us * 1000);
}

static void *hot(void *unused)
{
    for (int i = 0; i < 250; i++) {
        pthread_mutex_lock(&first);
        work_by(CLOCK_MONOTONIC, 200000);
        pthread_mutex_unlock(&first);
        for (int k = 0; k < 4; k++) {
            pthread_mutex_lock(&second);
            work_by(CLOCK_MONOTONIC, 5000);
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

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    void *(*body)(void *) = !strcmp(what, "hot")       ? hot
                            : !strcmp(what, "half")    ? half
                            : !strcmp(what, "rare")    ? rare
                            : !strcmp(what, "starved") ? starved
                            : !strcmp(what, "rwlock")  ? rwlock
                                                       : 0;
    int threads = body == starved ? 16 : body == hot ? 4 : 2;
    pthread_t all[16];
    if (!body)
        return 2;
    for (int i = 0; i < threads; i++)
        pthread_create(&all[i], 0, body, 0);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], 0);
    return 0;
}
