/* Locks in data, in zero-initialised data and on the heap.
 *
 *     placed [unlink]   removes its own file, after a while
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t in_zeros = PTHREAD_MUTEX_INITIALIZER;
static struct { long one; pthread_mutex_t lock; } in_data = {1, PTHREAD_MUTEX_INITIALIZER};

__attribute__((noinline)) static void take(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
}

__attribute__((noinline)) void take_from_heap(void)
{
    pthread_mutex_t *lock = calloc(1, sizeof *lock);
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
}

__attribute__((visibility("default"))) void use_all(void)
{
    take(&in_zeros);
    take(&in_data.lock);
    take_from_heap();
}

#ifndef LIBRARY
int main(int count, char **words)
{
    use_all();
    if (count > 1) {
        usleep(1000000);
        unlink(words[0]);
    }
    return 0;
}
#endif
