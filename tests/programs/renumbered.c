/* What the sandboxes of browsers do in a child that they clone past the C library: they put its
 * number where glibc has the thread's, and look at the owner of a mutex to see whether that was the
 * right place. */
#include "case.h"

static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static pid_t number(void) { return (pid_t)syscall(SYS_gettid); }

static pid_t owner_of(pthread_mutex_t *mutex) {
    pthread_mutex_lock(mutex);
    pid_t owner = mutex->__data.__owner;
    pthread_mutex_unlock(mutex);
    return owner;
}

/* Where glibc has the calling thread's number. */
static pid_t *place_of(pid_t known) {
    pid_t *word = (pid_t *)pthread_self();
    for (int i = 0; i < 512; i++)
        if (word[i] == known) return &word[i];
    return NULL;
}

static int sandboxed(pid_t parent) {
    int wrong = 0;
    wrong += owner_of(&checking) != parent;
    pid_t *place = place_of(parent);
    if (!place) return 100;
    *place = number();
    wrong += owner_of(&checking) != number() || owner_of(&recursive) != number();
    wrong += pthread_mutex_lock(&checking) != 0 || pthread_mutex_lock(&checking) != EDEADLK;
    wrong += pthread_mutex_unlock(&checking) != 0 || pthread_mutex_unlock(&checking) != EPERM;
    wrong += pthread_mutex_lock(&recursive) != 0 || pthread_mutex_lock(&recursive) != 0;
    wrong += pthread_mutex_unlock(&recursive) != 0 || pthread_mutex_unlock(&recursive) != 0;
    wrong += pthread_rwlock_wrlock(&rwlock) != 0 || pthread_rwlock_wrlock(&rwlock) != EDEADLK;
    wrong += pthread_rwlock_unlock(&rwlock) != 0;
    return wrong;
}

static int cloned(void) {
    pid_t self = number();
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(sandboxed(self));
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void *from_thread(void *result) {
    *(int *)result = cloned();
    return NULL;
}

int main(void) {
    HOLDS(owner_of(&checking) == number(), "owner");
    HOLDS(cloned() == 0, "cloned");
    int result = -1;
    pthread_t thread;
    pthread_create(&thread, NULL, from_thread, &result);
    pthread_join(thread, NULL);
    HOLDS(result == 0, "cloned.thread");
    HOLDS(owner_of(&checking) == number(), "owner.after");
    return 0;
}
