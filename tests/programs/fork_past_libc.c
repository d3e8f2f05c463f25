/* Children that were forked past libc, by _Fork or a system call: no handler of pthread_atfork runs, the child's only
 * thread may have its parent's number in libc, and threads that it makes have others. */
#include "case.h"

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER, counting = PTHREAD_MUTEX_INITIALIZER, kinds[4];
static pthread_cond_t turn_over = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static volatile bool is_over;
static long contending;
static long counted, written, turns;

enum { MEMBERS = 4, HAND_OVERS = 4, CONTENDERS = 3 };
static const int TURNS = 40;

static void count(long index) {
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&counting);
        counted++;
        while (i < HAND_OVERS && turns % MEMBERS != index) pthread_cond_wait(&turn_over, &counting);
        if (i < HAND_OVERS) {
            turns++;
            pthread_cond_broadcast(&turn_over);
        }
        pthread_mutex_unlock(&counting);
        pthread_rwlock_wrlock(&rwlock);
        written++;
        pthread_rwlock_unlock(&rwlock);
    }
}

/* What libc takes for the calling thread's number: the owner of a mutex that it has. */
static int number(void) {
    pthread_mutex_t own;
    make_mutex_of_type(&own, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_lock(&own);
    int owner = own.__data.__owner;
    pthread_mutex_unlock(&own);
    return owner;
}

static void count_beside(long index) { count(index + 1); }

static void *all_others(void *unused) {
    crew(MEMBERS - 1, count_beside);
    return unused;
}

/* Threads that contend, in a process whose first thread has locks and nodes from before the fork. */
static int use(void) {
    int wrong = 0;
    for (int i = 0; i < 4; i++) wrong += lock_unlock(&kinds[i]) != 0;
    wrong += pthread_mutex_lock(&kinds[1]) || pthread_mutex_lock(&kinds[1]); /* recursive */
    wrong += pthread_mutex_unlock(&kinds[1]) || pthread_mutex_unlock(&kinds[1]);
    counted = written = turns = 0;
    pthread_t others;
    wrong += pthread_create(&others, NULL, all_others, NULL) != 0;
    count(0);
    wrong += pthread_join(others, NULL) != 0;
    wrong += turns != HAND_OVERS * MEMBERS;
    return wrong + (counted != MEMBERS * TURNS) + (written != MEMBERS * TURNS);
}

static pid_t by_underscore(void) { return _Fork(); }
static pid_t by_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
static pid_t by_fork_call(void) { return (pid_t)syscall(SYS_fork); }

static const struct {
    const char *name;
    pid_t (*fork)(void);
} WAYS[] = {{"underscore", by_underscore}, {"clone", by_clone}, {"fork", by_fork_call}};

static int ends(pid_t child) {
    int status = 0;
    NEED(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* The child ends by a signal if it hangs: alarms are not inherited. */
static int in_child_of(pid_t (*way)(void), int (*body)(void)) {
    pid_t child = way();
    if (child == 0) {
        alarm(25);
        _exit(body());
    }
    return ends(child);
}

static int grandchild(void) {
    int result = use();
    return result + in_child_of(by_clone, use);
}

/* As Firefox does it: glibc's note of the number is corrected, and then looked for in a mutex. */
static int corrects_number(void) {
    int before = number(), now = (int)syscall(SYS_gettid);
    int *noted = (int *)((char *)pthread_self() + 0x2d0);
    if (*noted == before) *noted = now;
    return number() != now;
}

static int numbers_agree(void) { return number() != *(int *)((char *)pthread_self() + 0x2d0); }

static void contend(long index) {
    (void)index;
    __atomic_add_fetch(&contending, 1, __ATOMIC_RELAXED);
    while (!is_over) {
        pthread_mutex_lock(&busy);
        pthread_mutex_unlock(&busy);
        pause_ms(1);
    }
}

static void *crew_of_contenders(void *unused) {
    crew(CONTENDERS, contend);
    return unused;
}

int main(void) {
    for (int i = 0; i < 4; i++) make_mutex_of_type(&kinds[i], MUTEX_KINDS[i].type);
    pthread_t contenders;
    for EACH(way, WAYS) {
        VALUE(in_child_of(way->fork, use), "past.%s.quiet", way->name);
        VALUE(in_child_of(way->fork, numbers_agree), "past.%s.number-as-libc-has-it", way->name);
        VALUE(in_child_of(way->fork, corrects_number), "past.%s.number-corrected", way->name);
    }
    VALUE(use(), "past.parent.before-threads");
    NEED(pthread_create(&contenders, NULL, crew_of_contenders, NULL) == 0);
    /* libc's own lock for making threads must be free when the process forks. */
    while (__atomic_load_n(&contending, __ATOMIC_RELAXED) < CONTENDERS) pause_ms(1);
    pause_ms(5);
    for EACH(way, WAYS) {
        int wrong = 0;
        for (int i = 0; i < 3; i++) wrong += in_child_of(way->fork, use);
        VALUE(wrong, "past.%s.with-threads", way->name);
        VALUE(in_child_of(way->fork, grandchild), "past.%s.grandchildren", way->name);
    }
    VALUE(use(), "past.parent.after");
    is_over = true;
    pthread_join(contenders, NULL);
    return 0;
}
