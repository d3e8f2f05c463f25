/* Threads that wait for each other by condition variables, for half a second; prints how often
 * they did a second.
 *
 *     conditions broadcast N    one thread wakes N, and again when all of them have been there
 *     conditions slot N         N threads put something into one slot, and N take it out */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 256 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go_on = PTHREAD_COND_INITIALIZER, is_done = PTHREAD_COND_INITIALIZER;
static long done, generation, arrived, threads;
static int stops, is_full;

static void *in_the_crowd(void *unused) {
    pthread_mutex_lock(&mutex);
    for (long seen = 0; !stops; seen = generation) {
        if (++arrived == threads) pthread_cond_signal(&is_done);
        while (generation == seen && !stops) pthread_cond_wait(&go_on, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *broadcaster(void *unused) {
    pthread_mutex_lock(&mutex);
    for (; !stops; done++) {
        while (arrived < threads && !stops) pthread_cond_wait(&is_done, &mutex);
        arrived = 0;
        generation++;
        pthread_cond_broadcast(&go_on);
    }
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* Fills the slot if `argument` is not null, and empties it otherwise. */
static void *at_the_slot(void *argument) {
    int fills = argument != NULL;
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (is_full == fills && !stops) pthread_cond_wait(fills ? &is_done : &go_on, &mutex);
        if (stops) break;
        is_full = fills;
        done += fills;
        pthread_cond_signal(fills ? &go_on : &is_done);
        pthread_mutex_unlock(&mutex);
        pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t all[2 * MOST];
    int count = 0;
    threads = argc == 3 ? atol(argv[2]) : 0;
    if (threads < 1 || threads > MOST) return fprintf(stderr, "usage: conditions broadcast|slot N\n"), 2;
    int is_slot = strcmp(argv[1], "slot") == 0;
    for (long i = 0; i < threads; i++) {
        pthread_create(&all[count++], NULL, is_slot ? at_the_slot : in_the_crowd, NULL);
        if (is_slot) pthread_create(&all[count++], NULL, at_the_slot, &is_full);
    }
    if (!is_slot) pthread_create(&all[count++], NULL, broadcaster, NULL);
    usleep(500000);
    pthread_mutex_lock(&mutex);
    long counted = done;
    stops = 1;
    pthread_cond_broadcast(&go_on);
    pthread_cond_broadcast(&is_done);
    pthread_mutex_unlock(&mutex);
    while (count > 0) pthread_join(all[--count], NULL);
    printf("%ld a second\n", 2 * counted);
}
