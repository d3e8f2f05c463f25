/* Forks of which the C library's handlers know nothing: _Fork, and the system call. The child uses
 * every object, has threads of its own, and may neither wait for threads that it does not have nor
 * share anything with its parent. */
#include "case.h"

static pthread_mutex_t kinds[4], crowded = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER,
                       waited_with = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, waited_on = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int stop, rounds;
static long count, turns;

/* Several locks at a time: what threads hold them with is on several pages. */
enum { MANY = 40 };
static pthread_mutex_t many[MANY];

static void count_up(long unused) {
    (void)unused;
    for (int i = 0; i < rounds; i++) {
        for (int j = 0; j < MANY; j += 7) pthread_mutex_lock(&many[j]);
        pthread_mutex_lock(&crowded);
        long before = count;
        if (i % 8 == 0) sched_yield();
        count = before + 1;
        pthread_mutex_unlock(&crowded);
        for (int j = 0; j < MANY; j += 7) pthread_mutex_unlock(&many[j]);
    }
}

static void take_turns(long index) {
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&crowded);
        while (turns % 2 != index) pthread_cond_wait(&cond, &crowded);
        turns++;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&crowded);
    }
}

static int use_everything(void *unused) {
    (void)unused;
    int wrong = 0;
    for (int i = 0; i < 4; i++) wrong += lock_unlock(&kinds[i]) != 0;
    /* The forking thread has it. */
    wrong += pthread_mutex_unlock(&held) != 0 || lock_unlock(&held) != 0;
    wrong += pthread_rwlock_rdlock(&rwlock) != 0 || pthread_rwlock_unlock(&rwlock) != 0;
    wrong += pthread_rwlock_wrlock(&rwlock) != 0 || pthread_rwlock_unlock(&rwlock) != 0;
    count = turns = 0;
    crew(3, count_up);
    wrong += count != 3 * rounds;
    crew(2, take_turns);
    wrong += turns != 2 * rounds;
    /* Waiters of the parent are not here: a new one is told, and the object can be destroyed. */
    struct timespec soon = after_ms(CLOCK_REALTIME, 2);
    pthread_mutex_lock(&waited_with);
    pthread_cond_signal(&waited_on);
    wrong += pthread_cond_timedwait(&waited_on, &waited_with, &soon) != ETIMEDOUT;
    pthread_mutex_unlock(&waited_with);
    return wrong;
}

typedef pid_t (*Fork)(void);
#ifdef SYS_fork
static pid_t by_system_call(void) { return (pid_t)syscall(SYS_fork); }
#else
#define by_system_call by_clone
#endif
static pid_t by_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

static Fork how;

static int in_child_of(int (*call)(void *)) {
    pid_t child = how();
    NEED(child >= 0);
    if (child == 0) {
        alarm(60);
        _exit(call(NULL));
    }
    int status;
    NEED(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int fork_again(void *unused) {
    (void)unused;
    int first = use_everything(NULL);
    pthread_mutex_lock(&held);
    return first + in_child_of(use_everything) * 10;
}

static int wait_in_background(void *unused) {
    (void)unused;
    pthread_mutex_lock(&waited_with);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) pthread_cond_wait(&waited_on, &waited_with);
    pthread_mutex_unlock(&waited_with);
    return 0;
}

/* Uses what each thread has for itself, but holds nothing at the instant of the fork that the child
   would wait for. */
static pthread_mutex_t own[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int stay_busy(void *which) {
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(which);
        pthread_mutex_unlock(which);
        pause_ms(1);
    }
    return 0;
}

static void check(const char *name, Fork fork_by) {
    struct other waiter, busy[2];
    how = fork_by;
    stop = 0;
    begin(&waiter, wait_in_background, NULL);
    for (int i = 0; i < 2; i++) begin(&busy[i], stay_busy, &own[i]);
    int good = 0, forks = scaled(4);
    for (int i = 0; i < forks; i++) {
        pthread_mutex_lock(&held);
        good += in_child_of(use_everything) == 0;
        pthread_mutex_unlock(&held);
    }
    HOLDS(good == forks, "forks-past.%s.children", name);
    pthread_mutex_lock(&held);
    VALUE(in_child_of(fork_again), "forks-past.%s.child-of-child", name);
    VALUE(use_everything(NULL), "forks-past.%s.parent-after", name);
    pthread_mutex_lock(&waited_with);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&waited_on);
    pthread_mutex_unlock(&waited_with);
    CODE(finish(&waiter), "forks-past.%s.waiter-in-parent", name);
    for (int i = 0; i < 2; i++) CODE(finish(&busy[i]), "forks-past.%s.busy-%d", name, i);
}

int main(void) {
    rounds = scaled(30);
    for (int i = 0; i < 4; i++) make_mutex_of_type(&kinds[i], MUTEX_KINDS[i].type);
    for (int i = 0; i < MANY; i++) pthread_mutex_init(&many[i], NULL);
    check("_Fork", _Fork);
    check("fork-call", by_system_call);
    check("clone-call", by_clone);
    return 0;
}
