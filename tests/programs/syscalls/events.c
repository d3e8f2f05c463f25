/* poll, select and epoll: what they say of descriptors. */
#define PROGRAM "events"
#include "call.h"
#include <sys/signalfd.h>

static int sv[2];

static void seen(int fd, const char *what) {
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI};
    R(poll(&p, 1, 0), "%s.poll", what);
    R(p.revents, "%s.poll.events", what);
    fd_set in, out, other;
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_ZERO(&other);
    FD_SET(fd, &in);
    FD_SET(fd, &out);
    FD_SET(fd, &other);
    R(select(fd + 1, &in, &out, &other, &(struct timeval){0, 0}), "%s.select", what);
    R(!!FD_ISSET(fd, &in) + 2 * !!FD_ISSET(fd, &out) + 4 * !!FD_ISSET(fd, &other), "%s.select.sets", what);
    int e = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI, .data.u64 = 0x1234567890};
    R(epoll_ctl(e, EPOLL_CTL_ADD, fd, &event), "%s.epoll_ctl", what);
    R(epoll_wait(e, &event, 1, 0), "%s.epoll", what);
    R(event.events, "%s.epoll.events", what);
    R(event.data.u64, "%s.epoll.data", what);
    close(e);
}

CASE(states) {
    unix_pair(SOCK_STREAM, sv);
    seen(sv[0], "quiet");
    NEED(write(sv[1], "x", 1) == 1);
    seen(sv[0], "readable");
    char b;
    NEED(read(sv[0], &b, 1) == 1);
    filled(sv[0]);
    seen(sv[0], "full");
    both_closed(sv);
    unix_pair(SOCK_STREAM, sv);
    shutdown(sv[1], SHUT_WR);
    seen(sv[0], "half-closed");
    close(sv[1]);
    /* io_uring's thread may still have the file of the call before. */
    NEED(poll(&(struct pollfd){.fd = sv[0]}, 1, 2000) == 1);
    seen(sv[0], "hung-up");
    close(sv[0]);
    int fd = listener();
    seen(fd, "listening");
    int client = connected_to(fd);
    NEED(arrives(fd));
    seen(fd, "to-accept");
    close(client), close(fd);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    seen(fd, "unconnected");
    close(fd);
    tcp_pair(sv);
    NEED(send(sv[1], "!", 1, MSG_OOB) == 1);
    NEED(poll(&(struct pollfd){.fd = sv[0], .events = POLLPRI}, 1, 2000) == 1);
    seen(sv[0], "urgent");
}

CASE(strange_sets) {
    unix_pair(SOCK_STREAM, sv);
    struct pollfd p[4] = {{.fd = -1, .events = POLLIN, .revents = 99},
                          {.fd = sv[0], .events = POLLOUT},
                          {.fd = 499, .events = POLLIN},
                          {.fd = sv[1], .events = 0}};
    R(poll(p, 4, 1000), "poll");
    for (int i = 0; i < 4; i++) R(p[i].revents, "poll.%d", i);
    R(poll(NULL, 0, 0), "poll-none");
    volatile nfds_t too_many = 100000000;
    R(poll(p, too_many, 0), "poll-too-many");
    struct pollfd same[3] = {{.fd = sv[0], .events = POLLOUT}, {.fd = sv[0], .events = POLLIN}, {.fd = sv[0], .events = POLLOUT}};
    R(poll(same, 3, 0), "poll-same");
    /* select is told of numbers in the process' table only; descriptors of workers make that
       larger. */
    NEED(dup2(0, 600) == 600 && close(600) == 0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(499, &set);
    R(select(500, &set, NULL, NULL, &(struct timeval){0, 0}), "select-closed");
    volatile int negative = -1;
    R(select(negative, &set, NULL, NULL, &(struct timeval){0, 0}), "select-negative");
    FD_ZERO(&set);
    FD_SET(sv[0], &set);
    R(select(sv[0], NULL, &set, NULL, &(struct timeval){0, 0}), "select-below");
}

DEED(by_poll, poll((struct pollfd *)d->own, (nfds_t)d->size, 5000))
DEED(by_epoll, epoll_wait(d->fd, (struct epoll_event *)d->own, 4, 5000))
static void by_select(struct deed *d) {
    fd_set in;
    FD_ZERO(&in);
    FD_SET(d->fd, &in);
    d->result = select(d->fd + 1, &in, NULL, NULL, &(struct timeval){5, 0});
}

CASE(woken) {
    int other[2];
    NEED(pipe(other) == 0);
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    struct pollfd both[2] = {{.fd = other[0], .events = POLLIN}, {.fd = sv[0], .events = POLLIN}};
    for (int i = 0; i < 2; i++) {
        d = (struct deed){.bytes = d.own, .size = 2};
        memcpy(d.own, both, sizeof both);
        start(&d, by_poll, 0);
        WAITS(&d, "poll.%d.waits", i);
        char b;
        int to[2] = {other[1], sv[1]}, from[2] = {other[0], sv[0]};
        NEED(write(to[i], "x", 1) == 1);
        E(&d, "poll.%d", i);
        memcpy(both, d.own, sizeof both);
        R(both[i].revents, "poll.%d.events", i);
        NEED(read(from[i], &b, 1) == 1);
    }
    d = (struct deed){0};
    start(&d, by_select, sv[0]);
    WAITS(&d, "select.waits");
    NEED(write(sv[1], "x", 1) == 1);
    E(&d, "select");
}

CASE(hang_up_wakes) {
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {.size = 1};
    d.bytes = d.own;
    *(struct pollfd *)d.own = (struct pollfd){.fd = sv[0], .events = POLLIN};
    start(&d, by_poll, 0);
    close(sv[1]);
    E(&d, "poll");
    R(((struct pollfd *)d.own)->revents, "events");
}

CASE(own_shutdown_wakes) {
    tcp_pair(sv);
    struct deed d = {.size = 1};
    d.bytes = d.own;
    *(struct pollfd *)d.own = (struct pollfd){.fd = sv[0], .events = POLLIN};
    start(&d, by_poll, 0);
    shutdown(sv[0], SHUT_RDWR);
    E(&d, "poll");
    struct deed r = {0};
    start(&r, do_recv, sv[1]);
    E(&r, "other-end");
}

CASE(epoll_errors) {
    int e = epoll_create1(0), file = scratch();
    struct epoll_event event = {.events = EPOLLIN};
    unix_pair(SOCK_STREAM, sv);
    R(epoll_create(0), "create-0");
    R(epoll_create1(12345), "create1-bad");
    R(epoll_ctl(e, EPOLL_CTL_ADD, sv[0], &event), "add");
    R(epoll_ctl(e, EPOLL_CTL_ADD, sv[0], &event), "add-again");
    R(epoll_ctl(e, EPOLL_CTL_MOD, sv[1], &event), "modify-unknown");
    R(epoll_ctl(e, EPOLL_CTL_DEL, sv[1], NULL), "delete-unknown");
    R(epoll_ctl(e, EPOLL_CTL_ADD, file, &event), "file");
    R(epoll_ctl(e, EPOLL_CTL_ADD, e, &event), "itself");
    R(epoll_ctl(e, EPOLL_CTL_ADD, 499, &event), "closed");
    R(epoll_ctl(sv[0], EPOLL_CTL_ADD, sv[1], &event), "socket-as-epoll");
    R(epoll_ctl(e, 9, sv[1], &event), "bad-operation");
    R(epoll_wait(e, &event, 0, 0), "no-room");
    R(epoll_wait(sv[0], &event, 1, 0), "wait-on-socket");
    R(epoll_wait(499, &event, 1, 0), "wait-on-closed");
    R(epoll_ctl(e, EPOLL_CTL_DEL, sv[0], NULL), "delete");
    R(epoll_ctl(e, EPOLL_CTL_DEL, sv[0], NULL), "delete-again");
    R(read(e, &event, 8), "read");
    R(write(e, &event, 8), "write");
}

CASE(epoll_modes) {
    int e = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    unix_pair(SOCK_STREAM, sv);
    R(epoll_ctl(e, EPOLL_CTL_ADD, sv[0], &event), "edge");
    NEED(write(sv[1], "ab", 2) == 2);
    R(epoll_wait(e, &event, 1, 0), "edge-1");
    R(epoll_wait(e, &event, 1, 0), "edge-2");
    NEED(write(sv[1], "c", 1) == 1);
    R(epoll_wait(e, &event, 1, 0), "edge-3");
    event.events = EPOLLIN | EPOLLONESHOT;
    R(epoll_ctl(e, EPOLL_CTL_MOD, sv[0], &event), "once");
    R(epoll_wait(e, &event, 1, 0), "once-1");
    R(epoll_wait(e, &event, 1, 0), "once-2");
    event.events = EPOLLIN;
    R(epoll_ctl(e, EPOLL_CTL_MOD, sv[0], &event), "level");
    R(epoll_wait(e, &event, 1, 0), "level-1");
    R(epoll_wait(e, &event, 1, 0), "level-2");
    int twin = dup(sv[0]);
    close(sv[0]);
    R(epoll_wait(e, &event, 1, 0), "closed-but-twin");
    close(twin);
    R(epoll_wait(e, &event, 1, 0), "closed");
}

CASE(epoll_edge_per_arrival) {
    int e = epoll_create1(0), wakes = 0;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP};
    char b[64];
    tcp_pair(sv);
    set_nonblocking(sv[0], true);
    epoll_ctl(e, EPOLL_CTL_ADD, sv[0], &event);
    R(epoll_wait(e, &event, 1, 100), "writable");
    R(event.events, "writable.events");
    R(epoll_wait(e, &event, 1, 0), "no-more");
    for (int i = 0; i < 50; i++) {
        NEED(write(sv[1], "x", 1) == 1);
        wakes += epoll_wait(e, &event, 1, 2000) == 1;
        while (read(sv[0], b, 64) > 0) {
        }
    }
    R(wakes, "wakes");
    R(epoll_wait(e, &event, 1, 0), "none-left");
    shutdown(sv[1], SHUT_WR);
    R(epoll_wait(e, &event, 1, 2000), "half-close");
    R(event.events & (EPOLLIN | EPOLLRDHUP), "half-close.events");
}

CASE(epoll_from_elsewhere) {
    int e = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, by_epoll, e);
    WAITS(&d, "waits");
    R(epoll_ctl(e, EPOLL_CTL_ADD, sv[0], &event), "add-while-waiting");
    R(write(sv[1], "x", 1), "write");
    E(&d, "epoll_wait");
    R(((struct epoll_event *)d.own)->data.u32, "data");
    struct pollfd p = {.fd = e, .events = POLLIN};
    R(poll(&p, 1, 0), "poll-of-epoll");
    int outer = epoll_create1(0);
    event.data.u32 = 8;
    R(epoll_ctl(outer, EPOLL_CTL_ADD, e, &event), "nested");
    R(epoll_wait(outer, &event, 1, 0), "nested-wait");
    R(event.data.u32, "nested-data");
}

CASE(epoll_across_fork) {
    int e = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};
    unix_pair(SOCK_STREAM, sv);
    epoll_ctl(e, EPOLL_CTL_ADD, sv[0], &event);
    pid_t child = fork();
    if (child == 0) {
        event.data.u32 = 0;
        _exit(epoll_wait(e, &event, 1, 5000) == 1 ? (int)event.data.u32 : 99);
    }
    pause_ms(20);
    NEED(write(sv[1], "x", 1) == 1);
    STATUS(child, "child");
    R(epoll_wait(e, &event, 1, 0), "parent");
}

CASE(many_at_once) {
    enum { MANY = 200 };
    static int pairs[MANY][2];
    static struct pollfd p[MANY];
    static struct epoll_event events[MANY];
    int e = epoll_create1(0);
    for (int i = 0; i < MANY; i++) {
        unix_pair(SOCK_STREAM, pairs[i]);
        p[i] = (struct pollfd){.fd = pairs[i][0], .events = POLLIN};
        events[0] = (struct epoll_event){.events = EPOLLIN, .data.u32 = (uint32_t)i};
        NEED(epoll_ctl(e, EPOLL_CTL_ADD, pairs[i][0], &events[0]) == 0);
    }
    for (int i = 0; i < MANY; i += 3) NEED(write(pairs[i][1], "x", 1) == 1);
    R(poll(p, MANY, 1000), "poll");
    R(epoll_wait(e, events, MANY, 1000), "epoll");
    R(epoll_wait(e, events, 10, 1000), "epoll-ten");
    for (int i = 0; i < MANY; i++) both_closed(pairs[i]);
    R(epoll_wait(e, events, MANY, 0), "closed");
}

CASE(other_kinds) {
    int p[2];
    char b;
    NEED(pipe(p) == 0);
    struct pollfd ends[2] = {{.fd = p[0], .events = POLLIN}, {.fd = p[1], .events = POLLOUT}};
    R(poll(ends, 2, 0), "pipe");
    NEED(write(p[1], "x", 1) == 1);
    R(poll(ends, 2, 0), "pipe-full");
    NEED(read(p[0], &b, 1) == 1);
    close(p[1]);
    R(poll(ends, 1, 0), "pipe-closed");
    R(ends[0].revents, "pipe-closed.events");
    struct pollfd file = {.fd = scratch(), .events = POLLIN | POLLOUT};
    R(poll(&file, 1, 0), "file");
    R(file.revents, "file.events");
}

/* Signals of one thread: a thread that waits for them gets its own, whichever call it waits by. */
CASE(signals_of_a_thread) {
    int sv[2];
    fd_set set;
    sigset_t signals;
    struct signalfd_siginfo info;
    unix_pair(SOCK_STREAM, sv);
    sigemptyset(&signals), sigaddset(&signals, SIGUSR1);
    NEED(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    int fd = signalfd(-1, &signals, 0), twin = dup(fd), e = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    struct pollfd polled[40];
    for EACH(p, polled) *p = (struct pollfd){.fd = sv[0], .events = POLLIN};
    polled[39].fd = twin;
    FD_ZERO(&set); FD_SET(sv[0], &set); FD_SET(twin, &set);
    R(poll(polled, 40, 0), "poll-nothing");
    R(epoll_ctl(e, EPOLL_CTL_ADD, sv[0], &event), "add-socket");
    R(epoll_wait(e, &event, 1, 0), "epoll-nothing");
    event = (struct epoll_event){.events = EPOLLIN};
    R(epoll_ctl(e, EPOLL_CTL_ADD, twin, &event), "add-signals");
    NEED(raise(SIGUSR1) == 0);
    R(poll(polled, 40, 1000), "poll");
    R(select(twin + 1, &set, NULL, NULL, &(struct timeval){1, 0}), "select");
    R(epoll_wait(e, &event, 1, 1000), "epoll_wait");
    R(epoll_pwait(e, &event, 1, 1000, NULL), "epoll_pwait");
    R(read(twin, &info, sizeof info), "read");
    NEED(kill(getpid(), SIGUSR1) == 0);
    R(poll(polled, 40, 1000), "process.poll");
    R(read(fd, &info, sizeof info), "process.read");
}
