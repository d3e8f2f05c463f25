/* One line a case: `name result`, written at once and in the order of the cases.
 *
 * A result is a return code by name (`0`, `EBUSY`), a number, or `yes`. The same program runs with
 * and without the library under test and the lines are compared, so a result may not depend on
 * time: where a case is about time it prints a classification (`waited at least 5 ms yes`). `HOLDS`
 * prints `no` where an expectation of the program itself fails; the harness accepts no `no`, not
 * even from both runs.
 *
 * Serves C and C++. */
#ifndef CASE_H
#define CASE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What errno is before each call whose code is printed: no function under test may change it. */
enum { UNTOUCHED = 4242 };

__attribute__((format(printf, 2, 3))) static inline void say(const char *result, const char *name, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, name);
    int length = vsnprintf(text, sizeof text - 64, name, arguments);
    va_end(arguments);
    length += snprintf(text + length, sizeof text - (size_t)length, " %s\n", result);
    if (write(STDOUT_FILENO, text, (size_t)length) != length) _exit(99);
}

static inline const char *code_text(int code) {
    static __thread char text[64];
    const char *known = code == 0 ? "0" : strerrorname_np(code);
    int changed = errno == UNTOUCHED ? 0 : errno;
    snprintf(text, sizeof text, "%s%s%s", known ? known : "?", changed ? " and changes errno to " : "",
             changed ? strerrorname_np(changed) : "");
    return text;
}

/* The code that a call returns, and whether it changed errno. */
#define CODE(call, ...) (errno = UNTOUCHED, say(code_text(call), __VA_ARGS__))

/* What has to be so. */
#define HOLDS(condition, ...) say((condition) ? "yes" : "no", __VA_ARGS__)

/* A number that the object under test determines. */
#define VALUE(number, ...)                                 \
    do {                                                   \
        char text_[32];                                    \
        snprintf(text_, sizeof text_, "%ld", (long)(number)); \
        say(text_, __VA_ARGS__);                           \
    } while (0)

/* The version of a function of glibc that is the oldest there is, on x86-64 this one. */
#ifdef __aarch64__
#define OLDEST(version) "GLIBC_2.17"
#else
#define OLDEST(version) version
#endif

/* A step without which the case makes no sense. */
#define NEED(condition)                                                                     \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s does not hold (%m)\n", __FILE__, __LINE__, #condition); \
            _exit(98);                                                                      \
        }                                                                                   \
    } while (0)

/* ---- Time ---- */

static inline struct timespec now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t;
}

/* The moment `ms` milliseconds from now, or before now if negative. */
static inline struct timespec after_ms(clockid_t clock, long ms) {
    struct timespec t = now(clock);
    long nanoseconds = t.tv_nsec + ms % 1000 * 1000000;
    t.tv_sec += ms / 1000;
    if (nanoseconds < 0) t.tv_sec--, nanoseconds += 1000000000;
    if (nanoseconds >= 1000000000) t.tv_sec++, nanoseconds -= 1000000000;
    t.tv_nsec = nanoseconds;
    return t;
}

static inline double ms_since(struct timespec start) {
    struct timespec t = now(CLOCK_MONOTONIC);
    return (double)(t.tv_sec - start.tv_sec) * 1e3 + (double)(t.tv_nsec - start.tv_nsec) / 1e6;
}

static inline void pause_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0) {
    }
}

/* A number of repetitions, smaller where the harness knows that the lock makes them slow. */
static inline int scaled(int repetitions) {
    const char *percent = getenv("CASE_SCALE");
    int scaled = percent ? repetitions * atoi(percent) / 100 : repetitions;
    return scaled > 0 ? scaled : 1;
}

/* How a child ended that called this. */
static inline const char *end_of(void (*call)(void)) {
    static char text[32];
    pid_t child = fork();
    NEED(child >= 0);
    if (child == 0) {
        call();
        syscall(SYS_exit, 0);
    }
    int status;
    NEED(waitpid(child, &status, 0) == child);
    if (status == 0) return "well";
    snprintf(text, sizeof text, WIFSIGNALED(status) ? "by signal %d" : "with status %d",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return text;
}

/* ---- Other threads ---- */

/* Calls any of the functions under test that take one object. */
typedef int (*Call)(void *);

/* A thread that makes one call. */
struct other {
    pthread_t thread;
    Call call;
    void *object;
    int code;
    int tid;
    int done;
};

static inline void *other_main(void *argument) {
    struct other *self = (struct other *)argument;
    __atomic_store_n(&self->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    self->code = self->call(self->object);
    __atomic_store_n(&self->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static inline bool is_done(struct other *self) { return __atomic_load_n(&self->done, __ATOMIC_ACQUIRE); }

/* The kernel's state of a thread: `S` for asleep, 0 if it has ended. */
static inline char state_of(int tid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    char *state = strrchr(text, ')');
    return state ? state[2] : 0;
}

static inline double cpu_ms(pthread_t thread) {
    clockid_t clock;
    struct timespec t = {0, 0};
    if (pthread_getcpuclockid(thread, &clock) == 0) clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* How many times slower than a real machine the one is that runs this: more than 1 if emulated. */
#ifndef SLOWNESS
#define SLOWNESS 1
#endif

/* How many times in a row a thread that waits is found asleep: more where somebody else begins to
   wait for it. */
#ifndef ASLEEP
#define ASLEEP 2
#endif

/* Returns when the thread's call has returned, or waits: asleep some times in a row, or spinning
   for longer than making the library's threads takes. */
static inline void settle(struct other *self) {
    while (!is_done(self) && __atomic_load_n(&self->tid, __ATOMIC_ACQUIRE) == 0) pause_ms(1);
    char state = is_done(self) ? 0 : state_of(self->tid);
    double spent = state ? cpu_ms(self->thread) : 0;
    for (int asleep = 0; state && asleep < ASLEEP && !is_done(self); asleep = state == 'S' ? asleep + 1 : 0) {
        pause_ms(1);
        state = state_of(self->tid);
        if (state == 'R' && cpu_ms(self->thread) - spent > 4 * SLOWNESS) break;
    }
}

/* Makes a call in another thread, and returns when it has returned or waits. */
static inline void begin(struct other *self, Call call, void *object) {
    *self = (struct other){};
    self->call = call;
    self->object = object;
    NEED(pthread_create(&self->thread, NULL, other_main, self) == 0);
    settle(self);
}

static inline int finish(struct other *self) {
    pthread_join(self->thread, NULL);
    return self->code;
}

/* Makes a call in another thread; its code. errno of that thread is checked like ours. */
static inline void *elsewhere_main(void *argument) {
    struct other *self = (struct other *)argument;
    errno = UNTOUCHED;
    self->code = self->call(self->object);
    if (errno != UNTOUCHED) self->tid = errno;
    return NULL;
}

static inline int elsewhere(Call call, void *object) {
    struct other other = {};
    other.call = call;
    other.object = object;
    NEED(pthread_create(&other.thread, NULL, elsewhere_main, &other) == 0);
    pthread_join(other.thread, NULL);
    errno = other.tid ? other.tid : UNTOUCHED;
    return other.code;
}
#define ELSEWHERE(function, object) elsewhere((Call)(function), (object))

/* Runs `count` threads through `body(index)` and joins them. */
struct crew_member {
    pthread_t thread;
    void (*body)(long);
    long index;
};

static inline void *crew_main(void *argument) {
    struct crew_member *self = (struct crew_member *)argument;
    self->body(self->index);
    return NULL;
}

static inline void crew(int count, void (*body)(long)) {
    struct crew_member members[64];
    NEED(count <= 64);
    for (int i = 0; i < count; i++) {
        members[i] = (struct crew_member){};
        members[i].body = body;
        members[i].index = i;
        NEED(pthread_create(&members[i].thread, NULL, crew_main, &members[i]) == 0);
    }
    for (int i = 0; i < count; i++) pthread_join(members[i].thread, NULL);
}

/* ---- Other processes ---- */

/* Memory that children share. */
static inline void *shared_memory(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEED(memory != MAP_FAILED);
    return memory;
}

/* Makes a call in a child process; the code that it returned. */
static inline int in_child(Call call, void *object) {
    pid_t child = fork();
    NEED(child >= 0);
    if (child == 0) _exit(call(object));
    int status;
    NEED(waitpid(child, &status, 0) == child);
    errno = UNTOUCHED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
#define IN_CHILD(function, object) in_child((Call)(function), (object))

/* ---- Objects ---- */

/* A mutex with attributes. `protocol` may be PTHREAD_PRIO_NONE. */
static inline void make_mutex(pthread_mutex_t *mutex, int type, int shared, int robust, int protocol) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    NEED(pthread_mutexattr_settype(&attributes, type) == 0);
    NEED(pthread_mutexattr_setpshared(&attributes, shared) == 0);
    NEED(pthread_mutexattr_setrobust(&attributes, robust) == 0);
    NEED(pthread_mutexattr_setprotocol(&attributes, protocol) == 0);
    NEED(pthread_mutex_init(mutex, &attributes) == 0);
    pthread_mutexattr_destroy(&attributes);
}

static inline void make_mutex_of_type(pthread_mutex_t *mutex, int type) {
    make_mutex(mutex, type, PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
}

static inline void make_cond(pthread_cond_t *cond, int shared, clockid_t clock) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    NEED(pthread_condattr_setpshared(&attributes, shared) == 0);
    NEED(pthread_condattr_setclock(&attributes, clock) == 0);
    NEED(pthread_cond_init(cond, &attributes) == 0);
    pthread_condattr_destroy(&attributes);
}

/* A try-lock elsewhere, undone if it succeeds: whether the mutex is held. */
static inline int probe(void *mutex) {
    int code = pthread_mutex_trylock((pthread_mutex_t *)mutex);
    if (code == 0) pthread_mutex_unlock((pthread_mutex_t *)mutex);
    return code;
}

static inline int lock_unlock(void *mutex) {
    int code = pthread_mutex_lock((pthread_mutex_t *)mutex);
    return code ? code : pthread_mutex_unlock((pthread_mutex_t *)mutex);
}

struct mutex_kind {
    const char *name;
    int type;
};

static const struct mutex_kind MUTEX_KINDS[] = {
    {"normal", PTHREAD_MUTEX_NORMAL},
    {"recursive", PTHREAD_MUTEX_RECURSIVE},
    {"errorcheck", PTHREAD_MUTEX_ERRORCHECK},
    {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP},
};
#define EACH(item, list) (__typeof__(&(list)[0]) item = (list); item < (list) + sizeof(list) / sizeof *(list); item++)

#endif
