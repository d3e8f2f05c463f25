/* A mistake that ThreadSanitizer has to see past the annotations of the headers: two sessions write
   to an object that neither locks. */
#include <manycore/rlu.h>

#include <pthread.h>
#include <stddef.h>

static pthread_barrier_t both_are_in;
static long *object;

static void *work(void *data)
{
    rlu_thread_data_t *self = (rlu_thread_data_t *)data;
    RLU_READER_LOCK(self);
    pthread_barrier_wait(&both_are_in);
    ++*(long *)RLU_DEREF(self, object);
    RLU_READER_UNLOCK(self);
    return NULL;
}

int main(void)
{
    rlu_thread_data_t *selves[2];
    pthread_t threads[2];
    int i;
    RLU_INIT();
    object = (long *)RLU_ALLOC(sizeof *object);
    pthread_barrier_init(&both_are_in, NULL, 2);
    for (i = 0; i < 2; i++) {
        selves[i] = RLU_THREAD_ALLOC();
        RLU_THREAD_INIT(selves[i]);
        pthread_create(&threads[i], NULL, work, selves[i]);
    }
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
