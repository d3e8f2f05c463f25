/* Filters that allow the system calls which glibc's own locks make, and kill for any other: a child
 * puts itself behind one, and uses its locks there. */
#include "case.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long count, done;
static int turn, rounds, ready;

static void *work(void *argument) {
    long me = (long)argument;
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        count++;
        pthread_mutex_unlock(&mutex);
        if (i % 8 == me) pthread_rwlock_wrlock(&rwlock), count++, count--;
        else pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    }
    for (int i = 0; i < rounds / 8; i++) {
        pthread_mutex_lock(&mutex);
        while (turn % 2 != me) pthread_cond_wait(&cond, &mutex);
        turn++;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    }
    __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
    /* To end would make calls that are the C library's. */
    static int never;
    for (;;) syscall(SYS_futex, &never, 0, 0, 0);
    return NULL;
}

static void behind_a_filter(void) {
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_futex), ALLOW(SYS_write), ALLOW(SYS_exit), ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    pthread_t threads[2];
    NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    /* Held, so that both begin behind the filter, with a wait. */
    pthread_mutex_lock(&mutex);
    for (long i = 0; i < 2; i++) NEED(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 2) pause_ms(1);
    NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
    pthread_mutex_unlock(&mutex);
    while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < 2) {}
    if (count != 2 * rounds) syscall(SYS_exit_group, 9);
    syscall(SYS_exit_group, 0);
}

int main(void) {
    rounds = scaled(800);
    say(end_of(behind_a_filter), "sandbox.filter.ends");
    return 0;
}
