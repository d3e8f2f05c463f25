/* What a program finds around itself, which a library beneath it may not change: descriptors,
 * standard streams, signal dispositions, threads, timers, stack sizes; and what it may take away
 * from under such a library. */
#include "case.h"

#include <limits.h>
#include <sys/resource.h>
#include <sys/time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static int entries(const char *path) {
    DIR *directory = opendir(path);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void as_found(void) {
    int file = open("/dev/null", O_RDONLY);
    VALUE(file, "surroundings.first-free-descriptor");
    close(file);
    VALUE(entries("/proc/self/fd") - 1, "surroundings.open-descriptors");
    VALUE(entries("/proc/self/task"), "surroundings.threads-at-start");
    int changed = 0;
    for (int number = 1; number < 65; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0) changed += action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    }
    VALUE(changed, "surroundings.signal-handlers-at-start");
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    VALUE(!sigisemptyset(&blocked), "surroundings.signals-blocked-at-start");
    struct itimerval timer;
    getitimer(ITIMER_REAL, &timer);
    VALUE(timer.it_value.tv_sec, "surroundings.timer-at-start");
    stack_t stack;
    sigaltstack(NULL, &stack);
    VALUE(stack.ss_flags == SS_DISABLE, "surroundings.no-signal-stack-at-start");
    char line[64] = "";
    HOLDS(fgets(line, sizeof line, stdin) && strcmp(line, "a line for the program\n") == 0, "surroundings.standard-input");
    HOLDS(fgets(line, sizeof line, stdin) == NULL && feof(stdin), "surroundings.standard-input-ends");
}

static int tokens;

static int use_everything(void *unused) {
    (void)unused;
    struct timespec past = {1, 0};
    int wrong = lock_unlock(&mutex) != 0;
    wrong += pthread_rwlock_rdlock(&rwlock) != 0 || pthread_rwlock_unlock(&rwlock) != 0;
    pthread_mutex_lock(&mutex);
    wrong += pthread_cond_timedwait(&cond, &mutex, &past) != ETIMEDOUT;
    while (tokens == 0) pthread_cond_wait(&cond, &mutex);
    tokens--;
    pthread_mutex_unlock(&mutex);
    return wrong;
}

/* The smallest stack that POSIX grants: waits have to fit beside the program's own frames. */
static void on_the_smallest_stack(void) {
    struct other thread = {};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CODE(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN), "surroundings.smallest-stack.set");
    thread.call = use_everything;
    pthread_mutex_lock(&mutex);
    CODE(pthread_create(&thread.thread, &attributes, other_main, &thread), "surroundings.smallest-stack.create");
    settle(&thread);
    pthread_mutex_unlock(&mutex);
    settle(&thread);
    pthread_mutex_lock(&mutex);
    tokens = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    VALUE(finish(&thread), "surroundings.smallest-stack.all-works");
}

/* Daemons close all descriptors, servers exhaust them, sandboxes take memory away. */
static void without(const char *what) {
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    tokens = 1;
    CODE(lock_unlock(&fresh), "surroundings.without-%s.fresh-mutex", what);
    VALUE(ELSEWHERE(use_everything, NULL), "surroundings.without-%s.all-works", what);
}

static void taken_away(void) {
    struct rlimit limit, none;
    CODE(close_range(3, ~0U, 0), "surroundings.close-all");
    without("descriptors");
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = 3;
    CODE(setrlimit(RLIMIT_NOFILE, &none), "surroundings.no-more-descriptors");
    without("more-descriptors");
    setrlimit(RLIMIT_NOFILE, &limit);
    CODE(clearenv(), "surroundings.clear-environment");
    without("environment");
    CODE(chdir("/"), "surroundings.chdir");
    without("directory");
    sigset_t all;
    sigfillset(&all);
    CODE(pthread_sigmask(SIG_SETMASK, &all, NULL), "surroundings.block-signals");
    without("signals");
}

int main(void) {
    as_found();
    on_the_smallest_stack();
    taken_away();
    // The kernel says that a thread has ended a moment before it takes it out of the directory.
    for (int i = 0; i < 1000 && entries("/proc/self/task") > 1; i++) usleep(1000);
    VALUE(entries("/proc/self/task"), "surroundings.threads-at-end");
    return 0;
}
