/* Options, flags and requests of descriptors. */
#define PROGRAM "options"
#include "call.h"
#include <linux/sockios.h>

static int sv[2];

static void get(int fd, int level, int option, const char *name) {
    int value = -77;
    socklen_t length = sizeof value;
    R(getsockopt(fd, level, option, &value, &length), "%s", name);
    R(value, "%s.value", name);
    R(length, "%s.length", name);
}
static void set(int fd, int level, int option, int value, const char *name) {
    R(setsockopt(fd, level, option, &value, sizeof value), "%s.set", name);
    get(fd, level, option, name);
}

CASE(of_tcp) {
    tcp_pair(sv);
    get(sv[0], SOL_SOCKET, SO_TYPE, "type");
    get(sv[0], SOL_SOCKET, SO_DOMAIN, "domain");
    get(sv[0], SOL_SOCKET, SO_PROTOCOL, "protocol");
    get(sv[0], SOL_SOCKET, SO_ERROR, "error");
    get(sv[0], SOL_SOCKET, SO_ACCEPTCONN, "listening");
    set(sv[0], SOL_SOCKET, SO_KEEPALIVE, 1, "keepalive");
    set(sv[0], SOL_SOCKET, SO_REUSEADDR, 1, "reuseaddr");
    set(sv[0], SOL_SOCKET, SO_RCVBUF, 20000, "rcvbuf");
    set(sv[0], SOL_SOCKET, SO_SNDBUF, 20000, "sndbuf");
    set(sv[0], SOL_SOCKET, SO_RCVLOWAT, 5, "rcvlowat");
    set(sv[0], SOL_SOCKET, SO_OOBINLINE, 1, "oobinline");
    set(sv[0], SOL_SOCKET, SO_PRIORITY, 3, "priority");
    set(sv[0], IPPROTO_TCP, TCP_NODELAY, 0, "nodelay");
    set(sv[0], IPPROTO_TCP, TCP_CORK, 1, "cork");
    set(sv[0], IPPROTO_TCP, TCP_KEEPIDLE, 30, "keepidle");
    set(sv[0], IPPROTO_IP, IP_TTL, 9, "ttl");
    set(sv[0], SOL_SOCKET, 9999, 1, "unknown");
    set(sv[0], 9999, 1, 1, "unknown-level");
    R(setsockopt(sv[0], SOL_SOCKET, SO_KEEPALIVE, &sv, 1), "short");
    socklen_t length = 2;
    short half = 0;
    R(getsockopt(sv[0], SOL_SOCKET, SO_TYPE, &half, &length), "get-short");
    R(half, "get-short.value");
    length = (socklen_t)-4;
    R(getsockopt(sv[0], SOL_SOCKET, SO_TYPE, &half, &length), "get-negative");
}

CASE(of_unix) {
    unix_pair(SOCK_DGRAM, sv);
    get(sv[0], SOL_SOCKET, SO_TYPE, "type");
    get(sv[0], SOL_SOCKET, SO_DOMAIN, "domain");
    set(sv[0], SOL_SOCKET, SO_PASSCRED, 1, "passcred");
    set(sv[0], SOL_SOCKET, SO_PEEK_OFF, 2, "peek-off");
    set(sv[0], IPPROTO_TCP, TCP_NODELAY, 1, "nodelay");
}

CASE(lowest_amount) {
    char b[16];
    tcp_pair(sv);
    int five = 5;
    setsockopt(sv[0], SOL_SOCKET, SO_RCVLOWAT, &five, sizeof five);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    NEED(write(sv[1], "ab", 2) == 2);
    pause_ms(20);
    WAITS(&d, "two-wait");
    NEED(write(sv[1], "cde", 3) == 3);
    E(&d, "five");
    NEED(write(sv[1], "ab", 2) == 2);
    struct pollfd p = {.fd = sv[0], .events = POLLIN};
    R(poll(&p, 1, 20), "poll");
    R(recv(sv[0], b, 16, MSG_DONTWAIT), "dontwait");
}

/* A child's library has to ask: no thread sets the option there. Not over TCP, which forgets to wake a
 * reader that has a part of the bytes already. */
CASE(lowest_amount_of_a_child) {
    char b[16];
    unix_pair(SOCK_STREAM, sv);
    int five = 5;
    setsockopt(sv[0], SOL_SOCKET, SO_RCVLOWAT, &five, sizeof five);
    pid_t child = fork();
    if (child == 0) {
        struct deed d = {0};
        start(&d, do_recv, sv[0]);
        NEED(write(sv[1], "ab", 2) == 2);
        pause_ms(20);
        bool waits = !is_done(&d.other);
        NEED(write(sv[1], "cde", 3) == 3);
        _exit(ended(&d) == 5 && waits ? 0 : 1);
    }
    STATUS(child, "inherited");
    R(recv(sv[0], b, 16, MSG_DONTWAIT), "nothing-left");
}

CASE(requests) {
    int n = -1, off = 0;
    tcp_pair(sv);
    NEED(write(sv[1], "12345", 5) == 5 && arrives(sv[0]));
    R(ioctl(sv[0], FIONREAD, &n), "fionread");
    R(n, "fionread.value");
    R(ioctl(sv[0], SIOCATMARK, &n), "atmark");
    R(n, "atmark.value");
    R(ioctl(sv[0], SIOCOUTQ, &n), "outq");
    R(n, "outq.value");
    R(ioctl(sv[0], FIOCLEX), "fioclex");
    R(fcntl(sv[0], F_GETFD), "fioclex.flags");
    R(ioctl(sv[0], FIONCLEX), "fionclex");
    R(fcntl(sv[0], F_GETFD), "fionclex.flags");
    R(ioctl(sv[0], FIONBIO, &off), "fionbio");
    R(ioctl(sv[0], TIOCGWINSZ, &n), "terminal");
    R(ioctl(sv[0], 0xdead), "unknown");
    R(ioctl(499, FIONREAD, &n), "closed");
    R(ioctl(sv[0], FIONBIO, (int *)8), "bad-memory");
}

CASE(status) {
    struct stat about;
    unix_pair(SOCK_STREAM, sv);
    R(fstat(sv[0], &about), "fstat");
    R(S_ISSOCK(about.st_mode), "is-socket");
    R(fcntl(sv[0], F_GETFL), "flags");
    R(fcntl(sv[0], F_SETFL, O_APPEND | O_NONBLOCK), "set");
    R(fcntl(sv[0], F_GETFL), "flags-after");
    R(fcntl(sv[0], F_SETFL, 0), "clear");
    R(fcntl(sv[0], F_GETFL), "flags-cleared");
    R(fcntl(sv[0], F_SETFD, FD_CLOEXEC), "cloexec");
    R(fcntl(sv[0], F_GETFD), "cloexec.flags");
    R(fcntl(sv[0], F_SETPIPE_SZ, 4096), "pipe-size");
    struct flock lock = {.l_type = F_WRLCK};
    R(fcntl(sv[0], F_SETLK, &lock), "lock");
    R(fcntl(sv[0], F_GETOWN), "owner");
    R(fcntl(sv[0], 9999), "unknown");
    R(fcntl(499, F_SETFL, 0), "closed");
    R(fcntl64(sv[0], F_GETFL), "fcntl64");
    char path[64], target[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", sv[0]);
    R(readlink(path, target, sizeof target) > 8 && strncmp(target, "socket:[", 8) == 0, "link");
    R(open(path, O_RDONLY), "open-link");
}

CASE(thread_ties) {
    int value = 0;
    cpu_set_t before, after;
    tcp_pair(sv);
    sched_getaffinity(0, sizeof before, &before);
    pid_t tid = (pid_t)syscall(SYS_gettid);
    NEED(write(sv[0], "x", 1) == 1 && recv(sv[1], &value, 1, 0) == 1);
    sched_getaffinity(0, sizeof after, &after);
    YES(CPU_EQUAL(&before, &after), "affinity");
    YES(tid == syscall(SYS_gettid) && tid == getpid(), "thread");
    R(sched_getscheduler(0), "scheduler");
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    R(sigisemptyset(&mask), "signal-mask");
}
