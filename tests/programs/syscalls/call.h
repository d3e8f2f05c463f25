/* Cases about descriptors: each is a function, run in a process of its own, and prints lines
 * `file.case.step result`.
 *
 * A result is what a call returned and, if that is -1, errno by name. Without arguments a program
 * runs all of its cases, one process each; one that takes too long is killed and named, one that
 * dies is named with its signal. With names as arguments it runs these, in one process. */
#ifndef CALL_H
#define CALL_H

/* A thread that executes a moved call has to get a CPU first, which takes a time slice or two. */
#define ASLEEP 10

#include "../case.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

/* ---- Cases ---- */

enum { CASES_MAX = 128, CASE_SECONDS = 10 * SLOWNESS };

static struct {
    const char *name;
    void (*run)(void);
} cases[CASES_MAX];
static int case_count;
static const char *current = "none";

#define CASE(function)                                              \
    static void function(void);                                     \
    __attribute__((constructor)) static void add_##function(void) { \
        cases[case_count].name = #function;                         \
        cases[case_count++].run = function;                         \
    }                                                               \
    static void function(void)

/* ---- What calls return ---- */

static inline const char *outcome(long result) {
    static __thread char text[96];
    int error = errno;
    const char *known = strerrorname_np(error);
    if (result == -1)
        snprintf(text, sizeof text, "-1 %s", known ? known : "?");
    else if (error != UNTOUCHED)
        snprintf(text, sizeof text, "%ld and changes errno to %s", result, known ? known : "?");
    else
        snprintf(text, sizeof text, "%ld", result);
    return text;
}

#define SAID(result, format, ...) say(result, "%s.%s." format, PROGRAM, current, ##__VA_ARGS__)

/* A call's result, and errno if it fails or changes that. */
#define R(call, ...)                        \
    ({                                      \
        errno = UNTOUCHED;                  \
        long r_ = (long)(call);             \
        SAID(outcome(r_), __VA_ARGS__);     \
        r_;                                 \
    })

/* A result of which only the sign is certain. */
#define SIGN(call, ...)                                       \
    ({                                                        \
        errno = UNTOUCHED;                                    \
        long r_ = (long)(call);                               \
        SAID(r_ > 0 ? "some" : outcome(r_), __VA_ARGS__);     \
        r_;                                                   \
    })

/* What has to be so. */
#define YES(condition, ...) SAID((condition) ? "yes" : "no", __VA_ARGS__)

/* Bytes as text, others than letters escaped. */
#define TEXT(bytes, length, ...)                                                        \
    do {                                                                                \
        char shown_[128] = "'";                                                         \
        size_t at_ = 1;                                                                 \
        for (long i_ = 0; i_ < (long)(length) && at_ < 100; i_++) {                     \
            unsigned char byte_ = (unsigned char)((const char *)(bytes))[i_];           \
            at_ += (size_t)sprintf(shown_ + at_, byte_ > 31 && byte_ < 127 ? "%c" : "<%u>", byte_); \
        }                                                                               \
        strcpy(shown_ + at_, "'");                                                      \
        SAID(shown_, __VA_ARGS__);                                                      \
    } while (0)

/* ---- System calls by their numbers ---- */

/* AArch64 has only the newer call, with a third argument, which is 0 here. */
#ifndef SYS_dup2
#define SYS_dup2 SYS_dup3
#endif

/* A call that no preloaded library sees: a table of descriptors does not know of it. */
static inline long unseen(long number, long first, long second, long third, long fourth) {
#ifdef __x86_64__
    long result;
    // SAFETY: where the kernel has the fourth argument.
    register long r10 __asm__("r10") = fourth;
    // SAFETY: the arguments are those of the call, which changes two registers more.
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10) : "rcx", "r11", "memory");
#else
    // SAFETY: where the kernel has the number and the arguments.
    register long x8 __asm__("x8") = number, result __asm__("x0") = first, x1 __asm__("x1") = second;
    // SAFETY: where the kernel has the third and the fourth argument.
    register long x2 __asm__("x2") = third, x3 __asm__("x3") = fourth;
    // SAFETY: the arguments are those of the call, which changes only the first register.
    __asm__ volatile("svc 0" : "+r"(result) : "r"(x1), "r"(x2), "r"(x3), "r"(x8) : "memory");
#endif
    return result;
}

/* ---- A call in another thread ---- */

struct deed {
    struct other other;
    void (*act)(struct deed *);
    int fd;
    int flags;
    char *bytes;
    size_t size;
    long result;
    int error;
    char own[256];
};

#define DEED(name, expression) \
    static inline void name(struct deed *d) { d->result = (long)(expression); }

static inline int act(void *argument) {
    struct deed *d = (struct deed *)argument;
    errno = UNTOUCHED;
    d->act(d);
    d->error = errno;
    return 0;
}

/* Begins, and returns when the call has returned or waits. */
static inline void start(struct deed *d, void (*deed)(struct deed *), int fd) {
    d->act = deed;
    d->fd = fd;
    if (!d->bytes) d->bytes = d->own, d->size = sizeof d->own;
    begin(&d->other, act, d);
}

static inline long ended(struct deed *d) {
    finish(&d->other);
    errno = d->error;
    return d->result;
}

/* The result of a call that was begun. */
#define E(deed, ...)                          \
    ({                                        \
        long e_ = ended(deed);                \
        SAID(outcome(e_), __VA_ARGS__);       \
        e_;                                   \
    })

#define WAITS(deed, ...) YES(!is_done(&(deed)->other), __VA_ARGS__)

DEED(do_read, read(d->fd, d->bytes, d->size))
DEED(do_recv, recv(d->fd, d->bytes, d->size, d->flags))
DEED(do_write, write(d->fd, d->bytes, d->size))
DEED(do_send, send(d->fd, d->bytes, d->size, d->flags))
DEED(do_accept, accept(d->fd, NULL, NULL))

/* ---- Sockets ---- */

static inline void unix_pair(int type, int sv[2]) { NEED(socketpair(AF_UNIX, type, 0, sv) == 0); }

static inline struct sockaddr_in loopback(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static inline int port_of(int fd) {
    struct sockaddr_in a = {0};
    socklen_t length = sizeof a;
    NEED(getsockname(fd, (struct sockaddr *)&a, &length) == 0);
    return ntohs(a.sin_port);
}

static inline int bound(int type) {
    int fd = socket(AF_INET, type, 0);
    struct sockaddr_in a = loopback(0);
    NEED(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0);
    return fd;
}

static inline int listener(void) {
    int fd = bound(SOCK_STREAM);
    NEED(listen(fd, 64) == 0);
    return fd;
}

static inline int connected_to(int listening) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = loopback(port_of(listening));
    NEED(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0);
    return fd;
}

static inline void tcp_pair(int sv[2]) {
    int listening = listener();
    sv[0] = connected_to(listening);
    sv[1] = accept(listening, NULL, NULL);
    NEED(sv[1] >= 0 && close(listening) == 0);
    int one = 1;
    NEED(setsockopt(sv[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
    NEED(setsockopt(sv[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
}

/* Two UDP sockets that are connected to each other. */
static inline void udp_pair(int sv[2]) {
    for (int i = 0; i < 2; i++) sv[i] = bound(SOCK_DGRAM);
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in a = loopback(port_of(sv[1 - i]));
        NEED(connect(sv[i], (struct sockaddr *)&a, sizeof a) == 0);
    }
}

static inline void both_closed(int sv[2]) { close(sv[0]), close(sv[1]); }

/* Fills what lies between the two until nothing more fits; the number of bytes. */
static inline long filled(int fd) {
    static char block[65536];
    long all = 0, before = -1, n;
    // What the other end has taken over meanwhile makes room once more.
    for (; all > before; pause_ms(20)) {
        before = all;
        while ((n = send(fd, block, sizeof block, MSG_DONTWAIT)) > 0) all += n;
        while ((n = send(fd, block, 1, MSG_DONTWAIT)) > 0) all += n;
    }
    return all;
}

static inline bool arrives(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 3000) == 1;
}

static inline void set_nonblocking(int fd, bool on) {
    int flags = fcntl(fd, F_GETFL);
    NEED(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) == 0);
}

static inline void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_flags = flags};
    action.sa_handler = handler;
    NEED(sigaction(signal, &action, NULL) == 0);
}

static inline int descriptors(void) {
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    NEED(directory);
    for (struct dirent *e; (e = readdir(directory));) count += e->d_name[0] != '.' && atoi(e->d_name) < 512;
    closedir(directory);
    return count - 1;
}

/* An empty file without a name. */
static inline int scratch(void) {
    char path[] = "/tmp/case-XXXXXX";
    int fd = mkstemp(path);
    NEED(fd >= 0 && unlink(path) == 0);
    return fd;
}

/* How a child ended. */
#define STATUS(child, ...)                                                                \
    do {                                                                                  \
        int status_;                                                                      \
        char text_[64];                                                                   \
        pid_t child_ = (child);                                                           \
        NEED(waitpid(child_, &status_, 0) == child_);                                     \
        if (WIFSIGNALED(status_)) snprintf(text_, sizeof text_, "SIG%s", sigabbrev_np(WTERMSIG(status_))); \
        else snprintf(text_, sizeof text_, "exits %d", WEXITSTATUS(status_));             \
        SAID(text_, __VA_ARGS__);                                                         \
    } while (0)

/* ---- The program ---- */

static inline void run_case(int number) {
    current = cases[number].name;
    cases[number].run();
}

/* Runs a case in a process of its own. */
static inline void run_apart(const char *self, int number) {
    char *arguments[] = {(char *)self, (char *)cases[number].name, NULL};
    pid_t child;
    NEED(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    int status = 0;
    struct timespec limit = after_ms(CLOCK_MONOTONIC, CASE_SECONDS * 1000), look = {0, 100000000};
    while (waitpid(child, &status, WNOHANG) == 0) {
        struct timespec t = now(CLOCK_MONOTONIC);
        if (t.tv_sec > limit.tv_sec) {
            kill(child, SIGKILL);
            NEED(waitpid(child, &status, 0) == child);
            say("hangs", "%s.%s", PROGRAM, cases[number].name);
            return;
        }
        sigtimedwait(&ends, NULL, &look);
    }
    if (WIFSIGNALED(status)) {
        say(sigabbrev_np(WTERMSIG(status)), "%s.%s dies of", PROGRAM, cases[number].name);
    } else if (WEXITSTATUS(status) != 0) {
        char code[16];
        snprintf(code, sizeof code, "%d", WEXITSTATUS(status));
        say(code, "%s.%s exits", PROGRAM, cases[number].name);
    }
}

int main(int count, char **arguments) {
    if (count == 1) {
        sigset_t ends;
        sigemptyset(&ends);
        sigaddset(&ends, SIGCHLD);
        pthread_sigmask(SIG_BLOCK, &ends, NULL);
    } else {
        sigset_t none;
        sigemptyset(&none);
        pthread_sigmask(SIG_SETMASK, &none, NULL);
    }
    for (int i = 0; i < case_count; i++) {
        bool chosen = false;
        for (int a = 1; a < count; a++) chosen |= strcmp(arguments[a], cases[i].name) == 0;
        if (count == 1) run_apart(arguments[0], i);
        else if (chosen) run_case(i);
    }
    return 0;
}

#endif
