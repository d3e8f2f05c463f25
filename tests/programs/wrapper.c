/* A library that wraps lock functions, as tracers and detectors of deadlocks do: preloaded ahead of
 * the library under test or behind it, or part of the program. It finds the next functions in
 * order, or by version, or asks libc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#if defined BY_VERSION
#define LOOK(name, version) dlvsym(RTLD_NEXT, name, version)
#elif defined FROM_LIBC
#define LOOK(name, version) dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), name)
#else
#define LOOK(name, version) dlsym(RTLD_NEXT, name)
#endif

#define WRAP(name, version, parameters, arguments)                                  \
    int name parameters {                                                           \
        static __typeof__(&name) next;                                              \
        __typeof__(&name) known = __atomic_load_n(&next, __ATOMIC_RELAXED);         \
        if (!known) {                                                               \
            known = LOOK(#name, version);                                           \
            if (!known) abort();                                                    \
            __atomic_store_n(&next, known, __ATOMIC_RELAXED);                       \
        }                                                                           \
        return known arguments;                                                     \
    }

WRAP(pthread_mutex_lock, "GLIBC_2.2.5", (pthread_mutex_t *mutex), (mutex))
WRAP(pthread_mutex_unlock, "GLIBC_2.2.5", (pthread_mutex_t *mutex), (mutex))
WRAP(pthread_cond_wait, "GLIBC_2.3.2", (pthread_cond_t *cond, pthread_mutex_t *mutex), (cond, mutex))
WRAP(pthread_cond_signal, "GLIBC_2.3.2", (pthread_cond_t *cond), (cond))
WRAP(pthread_rwlock_wrlock, "GLIBC_2.2.5", (pthread_rwlock_t *lock), (lock))
