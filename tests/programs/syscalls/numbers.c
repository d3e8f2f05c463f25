/* Descriptors' numbers: given away again, shared, taken over, behind the library's back. */
#define PROGRAM "numbers"
#include "call.h"
#include <sys/eventfd.h>
#include <sys/signalfd.h>

static int sv[2];
static char b[16];

static int file_with(const char *text) {
    int fd = scratch();
    NEED(write(fd, text, strlen(text)) == (ssize_t)strlen(text) && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

/* The socket has been used, so that a library that keeps a table knows it. */
static void used_pair(void) {
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && read(sv[1], b, 1) == 1 && write(sv[1], "x", 1) == 1 && read(sv[0], b, 1) == 1);
}

CASE(lowest_first) {
    int first = R(socket(AF_INET, SOCK_STREAM, 0), "socket");
    R(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), "pair");
    R(sv[0], "pair.0");
    R(sv[1], "pair.1");
    R(epoll_create1(0), "epoll");
    close(first);
    R(dup(sv[0]), "dup");
    R(dup(sv[0]), "dup-2");
    R(descriptors(), "open");
}

CASE(close_twice) {
    used_pair();
    R(close(sv[0]), "close");
    R(close(sv[0]), "again");
    R(close(-1), "negative");
    R(close(100000), "never-open");
    R(read(sv[0], b, 1), "read");
    R(send(sv[0], b, 1, 0), "send");
    R(read(sv[1], b, 1), "other-end");
}

CASE(reused_by_file) {
    used_pair();
    int number = sv[0], file = file_with("of the file");
    R(close(sv[0]), "close");
    R(dup(file) == number, "same-number");
    R(read(number, b, 11), "read");
    TEXT(b, 11, "bytes");
    R(recv(number, b, 4, 0), "recv");
    R(send(number, b, 4, 0), "send");
}

CASE(reused_after_raw_close) {
    used_pair();
    int number = sv[0], file = file_with("of the file");
    R(syscall(SYS_close, sv[0]), "close");
    R(read(number, b, 4), "read-closed");
    R(recv(number, b, 4, 0), "recv-closed");
    R(dup(file) == number, "same-number");
    R(read(number, b, 11), "read");
    TEXT(b, 11, "bytes");
    R(recv(number, b, 4, 0), "recv");
    R(write(number, "more", 4), "write");
    R(lseek(number, 0, SEEK_CUR), "position");
}

CASE(reused_by_raw_open) {
    used_pair();
    int number = sv[0];
    R(syscall(SYS_close, sv[0]), "close");
    R(syscall(SYS_openat, AT_FDCWD, "/dev/zero", O_RDONLY) == number, "same-number");
    R(read(number, b, 8), "read");
    TEXT(b, 8, "bytes");
    R(recv(number, b, 8, 0), "recv");
    R(recv(number, b, 8, MSG_DONTWAIT), "recv-dontwait");
}

CASE(raw_dup2_over_a_socket) {
    used_pair();
    int other[2];
    unix_pair(SOCK_STREAM, other);
    NEED(write(other[1], "second", 6) == 6 && write(sv[1], "first", 5) == 5);
    R(syscall(SYS_dup2, other[0], sv[0], 0) == sv[0], "dup2");
    R(read(sv[0], b, 16), "read");
    TEXT(b, 6, "bytes");
    signal(SIGPIPE, SIG_IGN);
    R(write(sv[1], "x", 1), "old-end");
    NEED(pipe(other) == 0);
    NEED(write(other[1], "pipe", 4) == 4);
    R(syscall(SYS_dup3, other[0], sv[0], O_CLOEXEC) == sv[0], "dup3");
    R(read(sv[0], b, 16), "pipe.read");
    R(recv(sv[0], b, 16, 0), "pipe.recv");
}

CASE(raw_close_range) {
    used_pair();
    int first = sv[0], last = sv[1];
    R(syscall(SYS_close_range, first, last, 0), "close_range");
    R(read(first, b, 1), "read");
    int p[2];
    NEED(pipe(p) == 0);
    R(p[0] == first, "same-number");
    R(write(p[1], "abc", 3), "write");
    R(read(p[0], b, 8), "read-pipe");
    unix_pair(SOCK_STREAM, sv);
    R(write(sv[0], "abc", 3), "new.write");
    R(read(sv[1], b, 8), "new.read");
}

CASE(raw_socket) {
    int fd = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0), listening = listener();
    struct sockaddr_in a = loopback(port_of(listening));
    R(connect(fd, (struct sockaddr *)&a, sizeof a), "connect");
    int server = (int)syscall(SYS_accept, listening, NULL, NULL);
    struct deed d = {0};
    start(&d, do_recv, server);
    R(write(fd, "abc", 3), "write");
    E(&d, "recv");
    R(close(server), "close");
    R(read(fd, b, 4), "end");
}

CASE(reused_by_another_mode) {
    used_pair();
    int number = sv[0];
    R(recv(number, b, 1, MSG_DONTWAIT), "empty");
    close(sv[0]), close(sv[1]);
    NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv) == 0);
    R(sv[0] == number, "same-number");
    R(read(number, b, 1), "nonblocking-now");
    syscall(SYS_close, sv[0]), syscall(SYS_close, sv[1]);
    NEED(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, sv) == 0);
    struct deed d = {0};
    start(&d, do_read, number);
    WAITS(&d, "waits-now");
    R(write(sv[1], "x", 1), "write");
    E(&d, "read");
}

/* The number of a socket that is known to be one, and is one no more. */
static int unseen_close(void) {
    used_pair();
    NEED(unseen(SYS_close, sv[0], 0, 0, 0) == 0);
    return sv[0];
}

CASE(unseen_closed) {
    int number = unseen_close();
    R(read(number, b, 1), "read");
    R(send(number, b, 1, 0), "send");
    R(fcntl(number, F_GETFL), "fcntl");
    R(poll(&(struct pollfd){.fd = number, .events = POLLIN}, 1, 0), "poll");
    R(read(sv[1], b, 1), "other-end");
    R(close(number), "close");
}

CASE(unseen_then_a_pipe) {
    int number = unseen_close(), p[2];
    NEED(pipe(p) == 0);
    R(p[0] == number, "same-number");
    struct deed d = {0};
    start(&d, do_read, number);
    WAITS(&d, "waits");
    R(write(p[1], "abc", 3), "write");
    E(&d, "read");
    R(recv(number, b, 1, 0), "recv");
    set_nonblocking(number, true);
    R(read(number, b, 1), "empty");
    R(close(p[1]), "close");
    R(read(number, b, 1), "end");
}

CASE(unseen_then_events) {
    int number = unseen_close();
    uint64_t value = 7;
    R(eventfd(0, 0) == number, "same-number");
    R(write(number, &value, 8), "write");
    R(read(number, &value, 8), "read");
    R(value, "value");
}

CASE(unseen_then_a_file) {
    int number = unseen_close();
    FILE *file = tmpfile();
    NEED(file);
    R(fileno(file) == number, "same-number");
    R(write(number, "of the file", 11), "write");
    R(pread(number, b, 4, 3), "pread");
    TEXT(b, 4, "bytes");
    R(send(number, b, 4, 0), "send");
    R(fclose(file), "fclose");
    R(read(number, b, 1), "closed");
}

/* Of another open file, and with limits that no thread has seen. */
CASE(unseen_then_a_socket) {
    int number = unseen_close(), other[2];
    struct timeval t = {0, 50000};
    NEED(unseen(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, (long)other) == 0);
    R(other[0] == number, "same-number");
    NEED(unseen(SYS_setsockopt, number, SOL_SOCKET, SO_RCVTIMEO, (long)&t) != 0);
    R(write(other[1], "abc", 3), "write");
    R(read(number, b, 16), "read");
    TEXT(b, 3, "bytes");
    struct deed d = {0};
    start(&d, do_recv, number);
    WAITS(&d, "waits");
    R(close(other[1]), "close");
    E(&d, "end");
}

/* What it is told is told to the thread that reads. */
CASE(unseen_then_signals) {
    int number = unseen_close();
    struct signalfd_siginfo info = {0};
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1);
    NEED(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    R(signalfd(-1, &set, 0) == number, "same-number");
    NEED(pthread_kill(pthread_self(), SIGUSR1) == 0);
    R(poll(&(struct pollfd){.fd = number, .events = POLLIN}, 1, 1000), "poll");
    R(read(number, &info, sizeof info), "read");
    R(info.ssi_signo, "signal");
}

/* Calls on files never wait; those on what has the number now do, and handlers end them. */
static void does_nothing(int signal) { (void)signal; }
CASE(unseen_file_then_a_socket) {
    int number = file_with("of the file"), other[2];
    R(pread(number, b, 2, 0), "pread");
    R(write(number, "of", 2), "file.write");
    NEED(unseen(SYS_close, number, 0, 0, 0) == 0);
    NEED(unseen(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, (long)other) == 0);
    R(other[0] == number, "same-number");
    handle(SIGUSR1, does_nothing, 0);
    handle(SIGUSR2, does_nothing, SA_RESTART);
    struct deed d = {0}, e = {0};
    start(&d, do_read, number);
    pthread_kill(d.other.thread, SIGUSR1);
    E(&d, "interrupted");
    start(&e, do_read, number);
    pthread_kill(e.other.thread, SIGUSR2);
    pause_ms(20);
    WAITS(&e, "goes-on");
    R(write(other[1], "abc", 3), "write");
    E(&e, "read");
}

CASE(unseen_replaced) {
    used_pair();
    int other[2];
    unix_pair(SOCK_STREAM, other);
    NEED(write(other[1], "second", 6) == 6 && write(sv[1], "first", 5) == 5);
    R(unseen(SYS_dup2, other[0], sv[0], 0, 0) == sv[0], "dup2");
    R(read(sv[0], b, 16), "read");
    TEXT(b, 6, "bytes");
    signal(SIGPIPE, SIG_IGN);
    R(write(sv[1], "x", 1), "old-end");
    int e = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    R(epoll_ctl(e, EPOLL_CTL_ADD, sv[0], &event), "add");
    R(unseen(SYS_dup2, other[1], e, 0, 0) == e, "over-epoll");
    R(epoll_wait(e, &event, 1, 0), "epoll_wait");
    R(write(e, "abc", 3), "write");
    R(read(sv[0], b, 16), "read-3");
}

CASE(duplicates) {
    used_pair();
    int twin = dup(sv[0]);
    R(close(sv[0]), "close");
    R(write(twin, "x", 1), "write");
    R(read(sv[1], b, 1), "read");
    R(fcntl(twin, F_DUPFD, 100), "dupfd");
    R(fcntl(twin, F_DUPFD_CLOEXEC, 100), "dupfd-cloexec");
    R(fcntl(100, F_GETFD), "dupfd.flags");
    R(fcntl(101, F_GETFD), "dupfd-cloexec.flags");
    R(write(100, "y", 1), "write-100");
    R(write(101, "z", 1), "write-101");
    R(read(sv[1], b, 16), "read-both");
    close(twin), close(100);
}

CASE(duplicates_onto) {
    used_pair();
    int other[2];
    unix_pair(SOCK_STREAM, other);
    R(dup2(sv[0], sv[0]) == sv[0], "same");
    R(dup3(sv[0], sv[0], 0), "dup3-same");
    R(dup3(sv[0], 60, O_NONBLOCK), "dup3-flags");
    R(dup3(sv[0], 60, O_CLOEXEC), "dup3");
    R(fcntl(60, F_GETFD), "dup3.flags");
    R(dup2(sv[0], other[0]) == other[0], "over-a-socket");
    R(read(other[1], b, 1), "old-end");
    R(write(other[0], "abc", 3), "write");
    R(read(sv[1], b, 8), "read");
    R(dup2(498, other[0]), "from-closed");
    R(dup2(sv[0], -1), "to-negative");
    R(dup2(sv[0], 1 << 30), "to-huge");
    R(dup(499), "dup-closed");
    R(write(other[0], "abc", 3), "still-there");
}

CASE(ranges) {
    int many[10][2];
    for (int i = 0; i < 10; i++) unix_pair(SOCK_STREAM, many[i]);
    R(close_range((unsigned)many[5][0], (unsigned)many[8][1], 0), "close");
    R(fcntl(many[4][1], F_GETFD), "below");
    R(fcntl(many[5][0], F_GETFD), "first");
    R(fcntl(many[8][1], F_GETFD), "last");
    R(fcntl(many[9][0], F_GETFD), "above");
    R(close_range((unsigned)many[0][0], (unsigned)many[1][1], CLOSE_RANGE_CLOEXEC), "cloexec");
    R(fcntl(many[1][1], F_GETFD), "cloexec.flags");
    R(write(many[0][0], "x", 1), "cloexec.write");
    R(close_range(9, 5, 0), "backwards");
    R(close_range(900, 1000, 99), "bad-flags");
    closefrom(many[2][0]);
    R(fcntl(many[9][0], F_GETFD), "closefrom");
    unix_pair(SOCK_STREAM, sv);
    R(write(sv[0], "x", 1), "after.write");
    R(read(sv[1], b, 1), "after.read");
}

CASE(unshared_range) {
    used_pair();
    R(close_range(400, 500, CLOSE_RANGE_UNSHARE), "unshare");
    R(write(sv[0], "x", 1), "write");
    R(read(sv[1], b, 1), "read");
}

/* Closing does not end what waits in the kernel already. */
CASE(closed_while_recv_waits) {
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    R(close(sv[0]), "close");
    pause_ms(20);
    WAITS(&d, "waits");
    R(recv(sv[0], b, 1, 0), "closed");
    R(write(sv[1], "abc", 3), "write");
    E(&d, "recv");
}

CASE(closed_while_others_wait) {
    int fd = listener();
    unix_pair(SOCK_STREAM, sv);
    struct deed a = {0}, r = {0};
    start(&a, do_accept, fd);
    start(&r, do_read, sv[0]);
    struct sockaddr_in to = loopback(port_of(fd));
    R(close(fd), "accept.close");
    R(close(sv[0]), "read.close");
    int client = socket(AF_INET, SOCK_STREAM, 0);
    R(connect(client, (struct sockaddr *)&to, sizeof to), "connect");
    YES(ended(&a) >= 0, "accept");
    close(sv[1]);
    E(&r, "read");
}

CASE(taken_over_while_recv_waits) {
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0}, e = {0};
    start(&d, do_recv, sv[0]);
    int other[2], number = sv[0];
    unix_pair(SOCK_STREAM, other);
    R(dup2(other[0], number) == number, "dup2");
    start(&e, do_recv, number);
    R(write(other[1], "new", 3), "write-new");
    E(&e, "new");
    WAITS(&d, "old-waits");
    R(write(sv[1], "older", 5), "write-old");
    E(&d, "old");
}

CASE(closed_while_send_waits) {
    unix_pair(SOCK_STREAM, sv);
    long there = filled(sv[0]);
    struct deed d = {.bytes = b, .size = 16};
    start(&d, do_send, sv[0]);
    R(close(sv[0]), "close");
    static char block[65536];
    long got = 0, n;
    while (got < there + 16 && (n = read(sv[1], block, sizeof block)) > 0) got += n;
    YES(got == there + 16, "all-of-it");
    E(&d, "send");
    R(read(sv[1], block, 1), "end");
}

CASE(closed_while_poll_waits) {
    unix_pair(SOCK_STREAM, sv);
    int e = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(e, EPOLL_CTL_ADD, sv[0], &event);
    close(sv[0]);
    R(epoll_wait(e, &event, 1, 20), "epoll_wait");
}

CASE(limits) {
    struct rlimit limit;
    NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    int fd = listener(), client = connected_to(fd);
    (void)client;
    struct rlimit small = {20, limit.rlim_max};
    NEED(setrlimit(RLIMIT_NOFILE, &small) == 0);
    int last = 0, n;
    while ((n = dup(0)) >= 0) last = n;
    R(last, "last");
    R(socket(AF_INET, SOCK_STREAM, 0), "socket");
    R(accept(fd, NULL, NULL), "accept");
    R(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), "pair");
    R(epoll_create1(0), "epoll");
    R(dup2(0, 20), "dup2");
    close(last);
    R(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), "pair-with-one");
    R(accept(fd, NULL, NULL), "accept-then");
    small.rlim_cur = limit.rlim_max < 3000 ? limit.rlim_max : 3000;
    NEED(setrlimit(RLIMIT_NOFILE, &small) == 0);
    unix_pair(SOCK_STREAM, sv);
    int high = (int)small.rlim_cur - 1;
    R(dup2(sv[0], high) == high, "high");
    R(write(high, "abc", 3), "high.write");
    R(read(sv[1], b, 16), "high.read");
    R(write(sv[1], "ab", 2), "high.write-back");
    R(recv(high, b, 16, 0), "high.recv");
}

CASE(wild_numbers) {
    int wild[] = {-1, -2147483647 - 1, 2147483647, 1 << 20, 1 << 24, 500};
    for EACH(fd, wild) {
        R(read(*fd, b, 1), "%d.read", *fd);
        R(write(*fd, b, 1), "%d.write", *fd);
        R(recv(*fd, b, 1, 0), "%d.recv", *fd);
        R(close(*fd), "%d.close", *fd);
        R(fcntl(*fd, F_GETFL), "%d.fcntl", *fd);
        R(poll(&(struct pollfd){.fd = *fd, .events = POLLIN}, 1, 0), "%d.poll", *fd);
    }
}

static int spun[2];
static volatile int stop;
static int opens_and_closes(void *argument) {
    long *wrong = argument;
    while (!stop) {
        int own[2];
        char c = 0;
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, own) != 0) continue;
        *wrong += write(own[0], "q", 1) != 1 || read(own[1], &c, 1) != 1 || c != 'q';
        *wrong += close(own[0]) != 0 || close(own[1]) != 0;
    }
    return 0;
}

CASE(race_of_numbers) {
    struct other others[4];
    long wrong[4] = {0};
    unix_pair(SOCK_STREAM, spun);
    for (int i = 0; i < 4; i++) {
        others[i] = (struct other){.call = opens_and_closes, .object = &wrong[i]};
        NEED(pthread_create(&others[i].thread, NULL, other_main, &others[i]) == 0);
    }
    pause_ms(200);
    stop = 1;
    for (int i = 0; i < 4; i++) R((finish(&others[i]), wrong[i]), "wrong-%d", i);
    R(descriptors(), "open");
}
