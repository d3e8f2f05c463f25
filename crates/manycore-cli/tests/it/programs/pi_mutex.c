/* Threads that take turns with a mutex whose owner gets the priority of who waits: another futex
   call than that of others. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex;

__attribute__((noinline)) static void *take_turns(void *unused)
{
    for (int turn = 0; turn < 30; turn++) {
        pthread_mutex_lock(&mutex);
        usleep(2000);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(void)
{
    pthread_t all[3];
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex, &attributes);
    for (int at = 0; at < 3; at++)
        pthread_create(&all[at], NULL, take_turns, NULL);
    for (int at = 0; at < 3; at++)
        pthread_join(all[at], NULL);
    return 0;
}
