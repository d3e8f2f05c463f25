/* Processes that end in the middle: _exit, exit, signals, abort, exec, with locks held and threads
 * waiting. Their parent sees their exit status, and what they printed. */
#include "case.h"

#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static int wait_for_ever(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    for (;;) pthread_cond_wait(&cond, &mutex);
    return 0;
}

static int lock_for_ever(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}

/* A process with one thread in a wait, one in a loop of sections, and the mutex held by the
 * thread that ends it. */
static void busy_then(void (*end)(void)) {
    struct other waiter, looper = {};
    begin(&waiter, wait_for_ever, NULL);
    looper.call = lock_for_ever;
    NEED(pthread_create(&looper.thread, NULL, other_main, &looper) == 0);
    pause_ms(2);
    pthread_mutex_lock(&mutex);
    end();
}

static void by__exit(void) { _exit(3); }
static void by_exit(void) { exit(4); }
static void by_kill(void) { kill(getpid(), SIGKILL); }
static void by_term(void) { kill(getpid(), SIGTERM); }
static void by_abort(void) { abort(); }
static void by_fault(void) { *(volatile int *)8 = 1; }
static void by_exec(void) { execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL); }
static void by_quick_exit(void) { quick_exit(6); }

/* The main thread leaves with pthread_exit; the process ends with its last thread. */
static int exit_the_process(void *unused) {
    (void)unused;
    pause_ms(5);
    exit(7);
}

static void by_last_thread(void) {
    static struct other last;
    last.call = exit_the_process;
    NEED(pthread_create(&last.thread, NULL, other_main, &last) == 0);
    pthread_exit(NULL);
}

/* A handler of exit that takes the mutex which the exiting thread holds would hang in any program;
 * one that takes another does not. */
static pthread_mutex_t at_exit_mutex = PTHREAD_MUTEX_INITIALIZER;
static void lock_at_exit(void) {
    CODE(lock_unlock(&at_exit_mutex), "ends.at-exit.lock");
    CODE(pthread_mutex_trylock(&mutex), "ends.at-exit.held-by-exiting-thread");
}

int main(void) {
    const struct {
        const char *name;
        void (*end)(void);
    } ends[] = {{"_exit", by__exit}, {"exit", by_exit},   {"SIGKILL", by_kill},       {"SIGTERM", by_term},
                {"abort", by_abort}, {"fault", by_fault}, {"exec", by_exec},          {"quick_exit", by_quick_exit},
                {"last-thread", by_last_thread}};
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    for EACH(end, ends) {
        pid_t child = fork();
        NEED(child >= 0);
        if (child == 0) {
            if (end->end == by_exit) atexit(lock_at_exit);
            busy_then(end->end);
        }
        int status = -1;
        waitpid(child, &status, 0);
        VALUE(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), "ends.%s.status", end->name);
    }
    CODE(probe(&mutex), "ends.parent-unharmed");
    return 0;
}
