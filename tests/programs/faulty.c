/* A library to preload that has one fault, chosen by -DFAULT_...: the conformance suite, or the
 * soak, has to notice each.
 *
 * They are the ways in which interposing libraries have failed in practice. Everything else goes to
 * glibc. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* glibc's function of this name, with the signature of the declaration. */
#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
    void *address = dlsym(RTLD_NEXT, name);
    if (!address) abort();
    return address;
}

#if defined FAULT_TRYLOCK_SUCCEEDS

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    int code = REAL(pthread_mutex_trylock)(mutex);
    return code == EBUSY ? 0 : code;
}

#elif defined FAULT_TIMEDLOCK_SUCCEEDS

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until) {
    int code = REAL(pthread_mutex_timedlock)(mutex, until);
    return code == ETIMEDOUT ? 0 : code;
}

#elif defined FAULT_ERRNO_CHANGED

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    int code = REAL(pthread_mutex_lock)(mutex);
    errno = EAGAIN;
    return code;
}

#elif defined FAULT_TYPE_IGNORED

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes) {
    (void)attributes;
    return REAL(pthread_mutex_init)(mutex, NULL);
}

#elif defined FAULT_SHARED_IGNORED

int pthread_mutexattr_setpshared(pthread_mutexattr_t *attributes, int shared) {
    (void)attributes;
    (void)shared;
    return 0;
}

#elif defined FAULT_SIGNAL_LOST

int pthread_cond_signal(pthread_cond_t *cond) {
    static int calls;
    return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 3 == 0 ? 0 : REAL(pthread_cond_signal)(cond);
}

#elif defined FAULT_BROADCAST_WAKES_ONE

int pthread_cond_broadcast(pthread_cond_t *cond) { return REAL(pthread_cond_signal)(cond); }

#elif defined FAULT_SIGNAL_WAKES_ALL

int pthread_cond_signal(pthread_cond_t *cond) { return REAL(pthread_cond_broadcast)(cond); }

#elif defined FAULT_CLOCK_IGNORED

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until) {
    (void)clock;
    return REAL(pthread_cond_timedwait)(cond, mutex, until);
}

#elif defined FAULT_CANCELLED_WITHOUT_MUTEX

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
    (void)cond;
    struct timespec moment = {0, 1000000};
    int code = pthread_mutex_unlock(mutex);
    if (code) return code;
    nanosleep(&moment, NULL);
    return pthread_mutex_lock(mutex);
}

#elif defined FAULT_READERS_EXCLUDE

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) { return REAL(pthread_rwlock_wrlock)(lock); }

#elif defined FAULT_TRYRDLOCK_SUCCEEDS

int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) {
    int code = REAL(pthread_rwlock_tryrdlock)(lock);
    return code == EBUSY ? 0 : code;
}

#elif defined FAULT_SPIN_TRYLOCK_SUCCEEDS

int pthread_spin_trylock(pthread_spinlock_t *lock) {
    REAL(pthread_spin_trylock)(lock);
    return 0;
}

#elif defined FAULT_C11_FORGOTTEN

int mtx_trylock(mtx_t *mutex) {
    int code = REAL(mtx_trylock)(mutex);
    return code == thrd_busy ? thrd_success : code;
}

#elif defined FAULT_ONCE_TWICE

void call_once(once_flag *flag, void (*routine)(void)) {
    REAL(call_once)(flag, routine);
    routine();
}

#elif defined FAULT_NULL_AFTER_DESTROY

int pthread_mutex_destroy(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}

#elif defined FAULT_CHILD_INHERITS

/* A lock of the library's own that a fork copies while it is held. */
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static void take(void) { REAL(pthread_mutex_lock)(&own); }
static void leave(void) { REAL(pthread_mutex_unlock)(&own); }
__attribute__((constructor)) static void install(void) { pthread_atfork(take, leave, NULL); }

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    take();
    leave();
    return REAL(pthread_mutex_lock)(mutex);
}

#elif defined FAULT_STANDARD_OUTPUT

__attribute__((constructor)) static void greet(void) {
    if (write(STDOUT_FILENO, "using the best of locks\n", 24) != 24) abort();
}

#elif defined FAULT_DESCRIPTOR_KEPT

__attribute__((constructor)) static void open_file(void) {
    if (open("/dev/null", O_RDONLY) < 0) abort();
}

#elif defined FAULT_HANDLER_INSTALLED

static void ignore(int number) { (void)number; }
__attribute__((constructor)) static void install(void) { signal(SIGUSR2, ignore); }

#elif defined FAULT_OLD_VERSIONS_ONLY

/* Two implementations of one mutex, one behind each symbol version: what happens when a library
   exports one version. */
int old_trylock(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}
/* SAFETY: names a symbol's version; no code. */
__asm__(".symver old_trylock,pthread_mutex_trylock@GLIBC_2.2.5");

#elif defined FAULT_EXCLUDES_NOBODY

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}

#elif defined FAULT_LEAKS

/* A descriptor every few milliseconds, however often the program locks. */
int pthread_mutex_lock(pthread_mutex_t *mutex) {
    static _Atomic long last_ms;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long now_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (now_ms - last_ms >= 4) {
        last_ms = now_ms;
        if (dup(STDERR_FILENO) < 0) abort();
    }
    return REAL(pthread_mutex_lock)(mutex);
}

#else
#error "say which fault: -DFAULT_..."
#endif
