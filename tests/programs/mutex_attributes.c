/* Attribute objects, and mutexes made from every combination of them. */
#include "case.h"

#include <limits.h>

static void setters(void) {
    pthread_mutexattr_t a;
    int value = -7;
    CODE(pthread_mutexattr_init(&a), "mutexattr.init");
    pthread_mutexattr_gettype(&a, &value);
    VALUE(value == PTHREAD_MUTEX_DEFAULT, "mutexattr.type.default");
    for (int type = -1; type <= 5; type++) {
        CODE(pthread_mutexattr_settype(&a, type), "mutexattr.type.set-%d", type);
        CODE(pthread_mutexattr_gettype(&a, &value), "mutexattr.type.get-after-%d", type);
        VALUE(value, "mutexattr.type.value-after-%d", type);
    }
    for (int shared = -1; shared <= 2; shared++) {
        CODE(pthread_mutexattr_setpshared(&a, shared), "mutexattr.pshared.set-%d", shared);
        pthread_mutexattr_getpshared(&a, &value);
        VALUE(value, "mutexattr.pshared.value-after-%d", shared);
    }
    for (int robust = -1; robust <= 2; robust++) {
        CODE(pthread_mutexattr_setrobust(&a, robust), "mutexattr.robust.set-%d", robust);
        pthread_mutexattr_getrobust(&a, &value);
        VALUE(value, "mutexattr.robust.value-after-%d", robust);
    }
    for (int protocol = -1; protocol <= 3; protocol++) {
        CODE(pthread_mutexattr_setprotocol(&a, protocol), "mutexattr.protocol.set-%d", protocol);
        pthread_mutexattr_getprotocol(&a, &value);
        VALUE(value, "mutexattr.protocol.value-after-%d", protocol);
    }
    const int ceilings[] = {INT_MIN, -1, 0, 1, 50, 99, 100, INT_MAX};
    for EACH(ceiling, ceilings) {
        CODE(pthread_mutexattr_setprioceiling(&a, *ceiling), "mutexattr.prioceiling.set-%d", *ceiling);
        pthread_mutexattr_getprioceiling(&a, &value);
        VALUE(value, "mutexattr.prioceiling.value-after-%d", *ceiling);
    }
    CODE(pthread_mutexattr_destroy(&a), "mutexattr.destroy");
}

/* The mutex keeps what the attributes said when it was made. */
static void attributes_reused(void) {
    pthread_mutexattr_t a;
    pthread_mutex_t first, second, third;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    CODE(pthread_mutex_init(&first, &a), "mutexattr.reused.first-init");
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
    CODE(pthread_mutex_init(&second, &a), "mutexattr.reused.second-init");
    pthread_mutexattr_destroy(&a);
    pthread_mutexattr_init(&a);
    CODE(pthread_mutex_init(&third, &a), "mutexattr.reused.third-init");
    pthread_mutexattr_destroy(&a);
    memset(&a, 0xff, sizeof a);
    pthread_mutex_t *mutexes[] = {&first, &second, &third};
    for (int i = 0; i < 3; i++) {
        CODE(pthread_mutex_lock(mutexes[i]), "mutexattr.reused.%d.lock", i);
        if (i < 2) CODE(pthread_mutex_lock(mutexes[i]), "mutexattr.reused.%d.relock", i);
        CODE(pthread_mutex_trylock(mutexes[i]), "mutexattr.reused.%d.trylock", i);
        while (i == 0 && pthread_mutex_unlock(mutexes[i]) == 0) {
        }
        if (i > 0) CODE(pthread_mutex_unlock(mutexes[i]), "mutexattr.reused.%d.unlock", i);
        CODE(pthread_mutex_destroy(mutexes[i]), "mutexattr.reused.%d.destroy", i);
    }
}

static int timedlock_briefly(void *mutex) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 2);
    return pthread_mutex_timedlock(mutex, &soon);
}

static void use(const char *name, pthread_mutex_t *mutex, int type) {
    CODE(pthread_mutex_lock(mutex), "%s.lock", name);
    CODE(ELSEWHERE(pthread_mutex_trylock, mutex), "%s.trylock-elsewhere", name);
    CODE(ELSEWHERE(timedlock_briefly, mutex), "%s.timedlock-elsewhere", name);
    CODE(pthread_mutex_trylock(mutex), "%s.trylock-again", name);
    if (type == PTHREAD_MUTEX_RECURSIVE) CODE(pthread_mutex_unlock(mutex), "%s.unlock-inner", name);
    if (type != PTHREAD_MUTEX_RECURSIVE && type != PTHREAD_MUTEX_ERRORCHECK)
        CODE(timedlock_briefly(mutex), "%s.timedlock-again", name);
    else
        CODE(ELSEWHERE(pthread_mutex_unlock, mutex), "%s.unlock-elsewhere", name);
    if (type == PTHREAD_MUTEX_ERRORCHECK) CODE(pthread_mutex_lock(mutex), "%s.lock-again", name);
    CODE(pthread_mutex_unlock(mutex), "%s.unlock", name);
    CODE(ELSEWHERE(lock_unlock, mutex), "%s.lock-elsewhere", name);
    CODE(pthread_mutex_consistent(mutex), "%s.consistent", name);
    int ceiling = -7;
    CODE(pthread_mutex_getprioceiling(mutex, &ceiling), "%s.getprioceiling", name);
    CODE(pthread_mutex_setprioceiling(mutex, 1, &ceiling), "%s.setprioceiling", name);
    CODE(pthread_mutex_destroy(mutex), "%s.destroy", name);
}

static const char *const PROTOCOLS[] = {"none", "inherit"};

static void combination(const struct mutex_kind *kind, int shared, int robust, int protocol) {
    char name[100];
    snprintf(name, sizeof name, "attributes.%s.%s.%s.%s", kind->name, shared ? "shared" : "private",
             robust ? "robust" : "stalled", PROTOCOLS[protocol]);
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, kind->type);
    pthread_mutexattr_setpshared(&a, shared);
    pthread_mutexattr_setrobust(&a, robust);
    pthread_mutexattr_setprotocol(&a, protocol);
    pthread_mutex_t *mutex = shared_memory(4096);
    CODE(pthread_mutex_init(mutex, &a), "%s.init", name);
    use(name, mutex, kind->type);
    munmap(mutex, 4096);
    pthread_mutexattr_destroy(&a);
}

int main(void) {
    setters();
    attributes_reused();
    for EACH(kind, MUTEX_KINDS)
        for (int shared = 0; shared <= 1; shared++)
            for (int robust = 0; robust <= 1; robust++)
                for (int protocol = 0; protocol <= 1; protocol++) combination(kind, shared, robust, protocol);
    return 0;
}
