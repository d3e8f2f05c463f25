/* Lock functions that are looked up by name, as language runtimes, interfaces to foreign functions
 * and wrappers do: whatever way they are found, they are the same functions as those that the
 * program calls. */
#include "case.h"

#include <dlfcn.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int ready;

struct functions {
    int (*lock)(pthread_mutex_t *), (*trylock)(pthread_mutex_t *), (*unlock)(pthread_mutex_t *);
    int (*wait)(pthread_cond_t *, pthread_mutex_t *), (*signal)(pthread_cond_t *);
    int (*trywrlock)(pthread_rwlock_t *);
};

static void *look(void *handle, const char *name, const char *version) {
    return version ? dlvsym(handle, name, version) : dlsym(handle, name);
}

static struct functions all(void *handle, bool by_version) {
    const char *first = by_version ? OLDEST("GLIBC_2.2.5") : NULL, *second = by_version ? OLDEST("GLIBC_2.3.2") : NULL;
    return (struct functions){look(handle, "pthread_mutex_lock", first),   look(handle, "pthread_mutex_trylock", first),
                              look(handle, "pthread_mutex_unlock", first), look(handle, "pthread_cond_wait", second),
                              look(handle, "pthread_cond_signal", second), look(handle, "pthread_rwlock_trywrlock", first)};
}

static int wait_by_name(void *of) {
    struct functions *functions = of;
    int code = functions->lock(&mutex);
    while (!ready && !code) code = functions->wait(&cond, &mutex);
    functions->unlock(&mutex);
    return code;
}

static int wait_directly(void *unused) {
    (void)unused;
    int code = pthread_mutex_lock(&mutex);
    while (!ready && !code) code = pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    return code;
}

static void wake(int (*signal)(pthread_cond_t *), struct other *waiter, const char *way, const char *what) {
    HOLDS(!is_done(waiter), "lookups.%s.%s.waits", way, what);
    pthread_mutex_lock(&mutex);
    ready = 1;
    signal(&cond);
    pthread_mutex_unlock(&mutex);
    CODE(finish(waiter), "lookups.%s.%s", way, what);
    ready = 0;
}

static void use(void *handle, bool by_version, const char *way) {
    struct functions found = all(handle, by_version);
    NEED(found.lock && found.trylock && found.unlock && found.wait && found.signal && found.trywrlock);
    CODE(found.lock(&mutex), "lookups.%s.lock", way);
    CODE(pthread_mutex_trylock(&mutex), "lookups.%s.lock.trylock", way);
    CODE(found.unlock(&mutex), "lookups.%s.unlock", way);
    CODE(pthread_mutex_lock(&mutex), "lookups.%s.direct-lock", way);
    CODE(found.trylock(&mutex), "lookups.%s.direct-lock.trylock", way);
    CODE(pthread_mutex_unlock(&mutex), "lookups.%s.direct-unlock", way);
    CODE(pthread_rwlock_rdlock(&rwlock), "lookups.%s.rdlock", way);
    CODE(found.trywrlock(&rwlock), "lookups.%s.rdlock.trywrlock", way);
    CODE(pthread_rwlock_unlock(&rwlock), "lookups.%s.rwlock-unlock", way);
    struct other waiter;
    begin(&waiter, wait_by_name, &found);
    wake(pthread_cond_signal, &waiter, way, "waiter-of-direct-signal");
    begin(&waiter, wait_directly, NULL);
    wake(found.signal, &waiter, way, "direct-waiter");
}

/* Everything else is found, or not found, as without the library. */
static void others(void *libc) {
    HOLDS(dlsym(libc, "getpid") == (void *)getpid, "lookups.other-function");
    HOLDS(dlvsym(libc, "getpid", OLDEST("GLIBC_2.2.5")) == (void *)getpid, "lookups.other-function-by-version");
    HOLDS(dlsym(RTLD_NEXT, "no_such_function") == NULL, "lookups.none");
    HOLDS(strstr(dlerror(), "no_such_function") != NULL, "lookups.none.error");
    HOLDS(dlvsym(libc, "pthread_mutex_lock", "GLIBC_0.0") == NULL, "lookups.none-of-this-version");
    HOLDS(dlerror() != NULL, "lookups.none-of-this-version.error");
    HOLDS(dlerror() == NULL, "lookups.no-error");
    void *maths = dlopen("libm.so.6", RTLD_NOW);
    NEED(maths);
    HOLDS(dlsym(maths, "cos") != NULL, "lookups.other-library");
    void *same = dlmopen(LM_ID_BASE, "libm.so.6", RTLD_NOW);
    HOLDS(same == maths, "lookups.own-namespace");
}

int main(void) {
    void *libc = dlopen("libc.so.6", RTLD_NOW), *program = dlopen(NULL, RTLD_NOW);
    NEED(libc && program);
    use(libc, false, "libc");
    use(libc, true, "libc-by-version");
    use(program, false, "program");
    use(RTLD_DEFAULT, false, "default");
    use(RTLD_DEFAULT, true, "default-by-version");
    use(RTLD_NEXT, false, "next");
    use(RTLD_NEXT, true, "next-by-version");
    others(libc);
    return 0;
}
