// Spins in a function of its own for three parts of a thread's time and computes for two; calls the
// kernel in a second thread; computes in a child. Prints, in nanoseconds of CPU time, what it spent
// on each: spinning, computing, calling, and in the child; and the child's number. With an
// argument: for ever.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNIT 20000000L

static volatile long word = 1, sink;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char buffer[1 << 20];
static long spun, computed, called;
static int units = 25;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

__attribute__((noinline)) void spin_until_free(long turns) {
    while (word && turns-- > 0) __builtin_ia32_pause();
}

__attribute__((noinline)) void compute(long turns) {
    for (long turn = 0; turn < turns; turn++) sink = sink * 3 + turn;
}

// The clock is a system call: once in about a millisecond.
static long during(long ns, void (*what)(long), long turns) {
    long begin = now(), end = begin;
    while (end - begin < ns) {
        what(turns);
        end = now();
    }
    return end - begin;
}

static void *spinner(void *unused) {
    pthread_setname_np(pthread_self(), "spinner");
    for (int unit = 0; unit < units; unit++) {
        spun += during(3 * UNIT, spin_until_free, 20000);
        computed += during(2 * UNIT, compute, 400000);
    }
    return unused;
}

static void *caller(void *unused) {
    pthread_setname_np(pthread_self(), "caller");
    int zero = open("/dev/zero", O_RDONLY);
    long begin = now();
    while (called < units * UNIT) {
        if (read(zero, buffer, sizeof buffer) < 0) break;
        called = now() - begin;
    }
    close(zero);
    return unused;
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) units = 1 << 30;
    int ends[2];
    long in_child = 0;
    if (pipe(ends)) return 1;
    pid_t child = argc > 1 ? -1 : fork();
    if (child == 0) {
        in_child = during(units * UNIT, compute, 400000);
        return write(ends[1], &in_child, sizeof in_child) != sizeof in_child;
    }
    pthread_t threads[2];
    pthread_mutex_lock(&lock);
    pthread_create(&threads[0], NULL, spinner, NULL);
    pthread_create(&threads[1], NULL, caller, NULL);
    pthread_mutex_unlock(&lock);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    if (read(ends[0], &in_child, sizeof in_child) != sizeof in_child) return 1;
    waitpid(child, NULL, 0);
    printf("%ld %ld %ld %ld %d\n", spun, computed, called, in_child, child);
    return 0;
}
