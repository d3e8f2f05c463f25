/* Libraries that lock, loaded and unloaded at run time; functions under test looked up by name.
 *
 * `CASE_LIBRARY` names the library to load, `CASE_AGAIN` those to open besides (the library under
 * test itself, again, and a copy of it under another name; harmless ones in the run that is
 * compared with). */
#include "case.h"

#include <dlfcn.h>

static void *open_library(int flags) {
    void *library = dlopen(getenv("CASE_LIBRARY"), flags);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    NEED(library);
    return library;
}

static void *symbol(void *library, const char *name) {
    void *address = dlsym(library, name);
    NEED(address);
    return address;
}

static int call_from_library(void *call) { return ((int (*)(void))call)(); }

static void loaded_and_unloaded(const char *name, int flags) {
    int good = 0;
    for (int i = 0; i < 20; i++) {
        void *library = open_library(flags);
        int (*call)(void) = (int (*)(void))symbol(library, "library_call");
        good += call() == 1001 && ELSEWHERE(call_from_library, (void *)call) == 1002;
        dlclose(library);
    }
    VALUE(good, "loading.%s.fresh-each-time", name);
}

/* A mutex of the library, locked there and seen here. */
static void one_object_two_libraries(const char *name, int flags) {
    void *library = open_library(flags);
    pthread_mutex_t *(*get)(void) = (pthread_mutex_t * (*)(void)) symbol(library, "library_mutex");
    int (*trylock)(void) = (int (*)(void))symbol(library, "library_trylock");
    pthread_mutex_t *mutex = get();
    CODE(pthread_mutex_lock(mutex), "loading.shared-object.%s.lock-here", name);
    CODE(trylock(), "loading.shared-object.%s.trylock-there", name);
    CODE(pthread_mutex_unlock(mutex), "loading.shared-object.%s.unlock-here", name);
    CODE(trylock(), "loading.shared-object.%s.trylock-there-free", name);
    CODE(pthread_mutex_trylock(mutex), "loading.shared-object.%s.trylock-here", name);
    CODE(pthread_mutex_unlock(mutex), "loading.shared-object.%s.unlock-here-again", name);
    dlclose(library);
}

/* Addresses from dlsym have to be those that the program's own calls go to. */
static void looked_up(void) {
    const char *const trylocks[] = {"pthread_mutex_trylock", "pthread_mutex_lock", "pthread_mutex_unlock"};
    Call functions[3];
    for (int i = 0; i < 3; i++) functions[i] = (Call)symbol(RTLD_DEFAULT, trylocks[i]);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    CODE(functions[1](&mutex), "loading.dlsym.lock");
    CODE(pthread_mutex_trylock(&mutex), "loading.dlsym.trylock-own");
    CODE(functions[0](&mutex), "loading.dlsym.trylock");
    CODE(functions[2](&mutex), "loading.dlsym.unlock");
    CODE(functions[0](&mutex), "loading.dlsym.trylock-free");
    CODE(ELSEWHERE(pthread_mutex_trylock, &mutex), "loading.dlsym.trylock-own-elsewhere");
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    HOLDS(libc && dlsym(libc, "pthread_create"), "loading.libc-handle");
    CODE(pthread_mutex_unlock(&mutex), "loading.dlsym.unlock-own");
}

static void opened_again(void) {
    char *list = strdup(getenv("CASE_AGAIN"));
    pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&held);
    int number = 0;
    for (char *path = strtok(list, ":"); path; path = strtok(NULL, ":")) {
        number++;
        void *library = dlopen(path, number % 2 ? RTLD_NOW | RTLD_LOCAL : RTLD_LAZY | RTLD_GLOBAL);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        HOLDS(library, "loading.again-%d.opened", number);
        CODE(ELSEWHERE(pthread_mutex_trylock, &held), "loading.again-%d.held-mutex", number);
        pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
        CODE(lock_unlock(&fresh), "loading.again-%d.fresh-mutex", number);
        loaded_and_unloaded(number == 1 ? "beside-one" : "beside-two", RTLD_NOW);
        if (library) dlclose(library);
        CODE(ELSEWHERE(pthread_mutex_trylock, &held), "loading.again-%d.held-mutex-after", number);
    }
    CODE(pthread_mutex_unlock(&held), "loading.again.unlock");
}

static _Atomic int looked_up_all;

static void *load_and_unload(void *unused) {
    (void)unused;
    do dlclose(open_library(RTLD_NOW));
    while (!looked_up_all);
    return NULL;
}

/* While a library comes and goes. The pauses are for the loader's lock, which is not fair. */
static void looked_up_meanwhile(void) {
    pthread_t other;
    NEED(pthread_create(&other, NULL, load_and_unload, NULL) == 0);
    void *lock = symbol(RTLD_DEFAULT, "pthread_mutex_lock");
    int moved = 0;
    for (int i = 0; i < 500; i++) {
        moved += symbol(RTLD_DEFAULT, "pthread_mutex_lock") != lock;
        usleep(20);
    }
    looked_up_all = 1;
    pthread_join(other, NULL);
    VALUE(moved, "loading.dlsym.meanwhile-moved");
}

int main(void) {
    loaded_and_unloaded("lazy", RTLD_LAZY);
    loaded_and_unloaded("now", RTLD_NOW);
    loaded_and_unloaded("deep", RTLD_NOW | RTLD_DEEPBIND);
    one_object_two_libraries("now", RTLD_NOW);
    one_object_two_libraries("deep", RTLD_NOW | RTLD_DEEPBIND);
    looked_up();
    looked_up_meanwhile();
    opened_again();
    return 0;
}
