/* Four threads that want `hot_lock` all the time, and now and then `cold_lock`, for the given
 * number of seconds at most. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t hot_lock = PTHREAD_MUTEX_INITIALIZER, cold_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long n;
__attribute__((noinline)) void hot_work(void) {
    pthread_mutex_lock(&hot_lock);
    for (int i = 0; i < 20000; i++) n++;
    pthread_mutex_unlock(&hot_lock);
}
__attribute__((noinline)) void cold_work(void) {
    pthread_mutex_lock(&cold_lock);
    n++;
    pthread_mutex_unlock(&cold_lock);
}
static void *run(void *unused) {
    for (;;) { hot_work(); cold_work(); usleep(50); }
    return unused;
}
int main(int argc, char **argv) {
    alarm(atoi(argv[1]));
    pthread_t thread;
    for (int i = 0; i < 4; i++) pthread_create(&thread, 0, run, 0);
    pause();
}
