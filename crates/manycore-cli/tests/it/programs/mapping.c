/* Four threads that map and unmap memory all the time: they wait for the lock of their address
   space. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static pthread_mutex_t hot_lock = PTHREAD_MUTEX_INITIALIZER;
static void *run(void *unused) {
    for (;;) {
        void *memory = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        munmap(memory, 1 << 20);
        pthread_mutex_lock(&hot_lock);
        pthread_mutex_unlock(&hot_lock);
    }
    return unused;
}
int main(int argc, char **argv) {
    alarm(atoi(argv[1]));
    pthread_t thread;
    for (int i = 0; i < 4; i++) pthread_create(&thread, 0, run, 0);
    pause();
}
