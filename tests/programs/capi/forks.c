/* What the library is to a child of fork, and what the forking thread held there. */
#include "expect.h"

#include <manycore/lock.h>
#include <manycore/rcu.h>
#include <manycore/rlu.h>

#include <sys/wait.h>
#include <unistd.h>

#define KINDS_MAX 64
static const char *const rw_kinds[] = {"phase-rw", "per-cpu-rw", "bravo"};

/* Of each kind one that the forking thread holds. */
static struct {
    manycore_mutex_t mutex[KINDS_MAX];
    manycore_rwlock_t read[3], written[3];
} held;

static void hold(void)
{
    size_t i;
    for (i = 0; manycore_lock_name(i); i++) {
        EXPECT(1, i < KINDS_MAX);
        EXPECT(MANYCORE_OK, manycore_mutex_init(&held.mutex[i], manycore_lock_name(i)));
        EXPECT(MANYCORE_OK, manycore_mutex_lock(&held.mutex[i]));
    }
    EXPECT(1, i > 0);
    for (i = 0; i < 3; i++) {
        EXPECT(MANYCORE_OK, manycore_rwlock_init(&held.read[i], rw_kinds[i]));
        EXPECT(MANYCORE_OK, manycore_rwlock_init(&held.written[i], rw_kinds[i]));
        EXPECT(MANYCORE_OK, manycore_rwlock_rdlock(&held.read[i]));
        EXPECT(MANYCORE_OK, manycore_rwlock_wrlock(&held.written[i]));
    }
}

/* By the thread that holds them, in whatever process. */
static void give_back(void)
{
    size_t i;
    for (i = 0; manycore_lock_name(i); i++) {
        EXPECT(MANYCORE_DEADLOCK, manycore_mutex_lock(&held.mutex[i]));
        EXPECT(MANYCORE_OK, manycore_mutex_unlock(&held.mutex[i]));
        EXPECT(MANYCORE_NOT_OWNER, manycore_mutex_unlock(&held.mutex[i]));
        EXPECT(MANYCORE_OK, manycore_mutex_lock(&held.mutex[i]));
        EXPECT(MANYCORE_OK, manycore_mutex_unlock(&held.mutex[i]));
        EXPECT(MANYCORE_OK, manycore_mutex_destroy(&held.mutex[i]));
    }
    for (i = 0; i < 3; i++) {
        EXPECT(MANYCORE_BUSY, manycore_rwlock_trywrlock(&held.read[i]));
        EXPECT(MANYCORE_OK, manycore_rwlock_rdunlock(&held.read[i]));
        EXPECT(MANYCORE_OK, manycore_rwlock_wrlock(&held.read[i]));
        EXPECT(MANYCORE_OK, manycore_rwlock_wrunlock(&held.read[i]));
        EXPECT(MANYCORE_DEADLOCK, manycore_rwlock_wrlock(&held.written[i]));
        EXPECT(MANYCORE_OK, manycore_rwlock_wrunlock(&held.written[i]));
        EXPECT(MANYCORE_OK, manycore_rwlock_destroy(&held.read[i]));
        EXPECT(MANYCORE_OK, manycore_rwlock_destroy(&held.written[i]));
    }
}

static void *is_another(void *data)
{
    (void)data;
    EXPECT(MANYCORE_BUSY, manycore_mutex_trylock(&held.mutex[0]));
    EXPECT(MANYCORE_NOT_OWNER, manycore_mutex_unlock(&held.mutex[0]));
    EXPECT(MANYCORE_NOT_OWNER, manycore_rwlock_wrunlock(&held.written[0]));
    return NULL;
}

static void in_child(rlu_thread_data_t *self)
{
    manycore_rcu_thread_t *thread;
    manycore_rcu_t *rcu;
    EXPECT(MANYCORE_NOT_INITIALIZED, RLU_FINISH());
    EXPECT(MANYCORE_OK, RLU_INIT());
    EXPECT(MANYCORE_OK, RLU_THREAD_INIT(self));
    RLU_READER_LOCK(self);
    RLU_READER_UNLOCK(self);
    EXPECT(MANYCORE_OK, RLU_THREAD_FINISH(self));
    EXPECT(MANYCORE_OK, RLU_FINISH());
    EXPECT(MANYCORE_OK, manycore_rcu_create(NULL, &rcu));
    EXPECT(MANYCORE_OK, manycore_rcu_register(rcu, &thread));
    EXPECT(MANYCORE_OK, manycore_rcu_synchronize(thread));
    run(is_another, NULL);
    give_back();
}

int main(void)
{
    rlu_thread_data_t *self = RLU_THREAD_ALLOC();
    int status, generations;
    pid_t child, parent = getpid();
    EXPECT(MANYCORE_OK, RLU_INIT());
    EXPECT(MANYCORE_OK, RLU_THREAD_INIT(self));
    hold();
    fflush(stdout);
    /* What is held is so in a child of the child, too. */
    for (generations = 0; generations < 2; generations++) {
        child = fork();
        if (child != 0)
            break;
    }
    if (child == 0) {
        in_child(self);
        fflush(stdout);
        _exit(failed);
    }
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
    if (getpid() != parent) {
        fflush(stdout);
        _exit(failed);
    }
    give_back();
    EXPECT(MANYCORE_OK, RLU_THREAD_FINISH(self));
    EXPECT(MANYCORE_OK, RLU_FINISH());
    EXPECT(MANYCORE_OK, RLU_THREAD_FREE(self));
    return failed;
}
