/* Calls that may not wait: by the descriptor's mode, however it was set, and by a flag of the
   call. */
#define PROGRAM "nonblocking"
#include "call.h"

static void empty_and_full(int sv[2], const char *how) {
    char b[4];
    struct iovec part = {b, 4};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr messages = {.msg_hdr = message};
    R(read(sv[0], b, 4), "%s.read", how);
    R(recv(sv[0], b, 4, 0), "%s.recv", how);
    R(recv(sv[0], b, 4, MSG_WAITALL), "%s.waitall", how);
    R(recvfrom(sv[0], b, 4, 0, NULL, NULL), "%s.recvfrom", how);
    R(readv(sv[0], &part, 1), "%s.readv", how);
    R(recvmsg(sv[0], &message, 0), "%s.recvmsg", how);
    R(recvmmsg(sv[0], &messages, 1, 0, NULL), "%s.recvmmsg", how);
    filled(sv[0]);
    R(write(sv[0], b, 4), "%s.write", how);
    R(send(sv[0], b, 4, 0), "%s.send", how);
    R(writev(sv[0], &part, 1), "%s.writev", how);
    R(sendmsg(sv[0], &message, 0), "%s.sendmsg", how);
    R(sendmmsg(sv[0], &messages, 1, 0), "%s.sendmmsg", how);
}

CASE(by_fcntl) {
    int sv[2];
    unix_pair(SOCK_STREAM, sv);
    R(fcntl(sv[0], F_SETFL, O_NONBLOCK), "set");
    R(fcntl(sv[0], F_GETFL) & O_NONBLOCK, "get");
    R(fcntl(sv[1], F_GETFL) & O_NONBLOCK, "other-end");
    empty_and_full(sv, "fcntl");
}

CASE(by_ioctl) {
    int sv[2], on = 1;
    unix_pair(SOCK_STREAM, sv);
    R(ioctl(sv[0], FIONBIO, &on), "set");
    R(fcntl(sv[0], F_GETFL) & O_NONBLOCK, "get");
    empty_and_full(sv, "ioctl");
    on = 0;
    R(ioctl(sv[0], FIONBIO, &on), "clear");
    R(fcntl(sv[0], F_GETFL) & O_NONBLOCK, "get-after");
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    WAITS(&d, "waits-again");
    R(write(sv[1], "x", 1), "write");
    E(&d, "got");
}

CASE(by_type) {
    int sv[2];
    R(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv), "pair");
    R(fcntl(sv[0], F_GETFL) & O_NONBLOCK, "get");
    R(fcntl(sv[0], F_GETFD), "cloexec");
    empty_and_full(sv, "type");
    int fd = R(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) > 0, "socket");
    (void)fd;
}

CASE(by_duplicate) {
    int sv[2];
    char b[4];
    unix_pair(SOCK_STREAM, sv);
    int twin = dup(sv[0]);
    set_nonblocking(twin, true);
    R(recv(sv[0], b, 4, 0), "original");
    set_nonblocking(sv[0], false);
    struct deed d = {0};
    start(&d, do_recv, twin);
    WAITS(&d, "twin-waits");
    R(write(sv[1], "x", 1), "write");
    E(&d, "twin");
}

CASE(by_child) {
    int sv[2];
    char b[4];
    unix_pair(SOCK_STREAM, sv);
    pid_t child = fork();
    if (child == 0) {
        set_nonblocking(sv[0], true);
        _exit(0);
    }
    STATUS(child, "child");
    R(recv(sv[0], b, 4, 0), "recv");
}

CASE(by_raw_fcntl) {
    int sv[2];
    char b[4];
    unix_pair(SOCK_STREAM, sv);
    R(recv(sv[0], b, 4, MSG_DONTWAIT), "dontwait");
    R(syscall(SYS_fcntl, sv[0], F_SETFL, O_NONBLOCK), "raw");
    R(recv(sv[0], b, 4, 0), "recv");
    R(read(sv[0], b, 4), "read");
}

CASE(by_flag) {
    int sv[2];
    char b[4];
    unix_pair(SOCK_STREAM, sv);
    R(recv(sv[0], b, 4, MSG_DONTWAIT), "recv");
    R(recvfrom(sv[0], b, 4, MSG_DONTWAIT, NULL, NULL), "recvfrom");
    R(recv(sv[0], b, 4, MSG_DONTWAIT | MSG_PEEK), "peek");
    SIGN(filled(sv[0]), "filled");
    R(send(sv[0], b, 4, MSG_DONTWAIT), "send");
    R(sendto(sv[0], b, 4, MSG_DONTWAIT, NULL, 0), "sendto");
}

CASE(listening) {
    int fd = listener();
    set_nonblocking(fd, true);
    R(accept(fd, NULL, NULL), "accept");
    R(accept4(fd, NULL, NULL, SOCK_CLOEXEC), "accept4");
    int client = connected_to(fd);
    NEED(arrives(fd));
    int server = accept(fd, NULL, NULL);
    R(fcntl(server, F_GETFL) & O_NONBLOCK, "not-inherited");
    R(fcntl(server, F_GETFD), "no-cloexec");
    int second = connected_to(fd);
    NEED(arrives(fd));
    server = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    R(fcntl(server, F_GETFL) & O_NONBLOCK, "accept4.nonblocking");
    R(fcntl(server, F_GETFD), "accept4.cloexec");
    char b;
    R(read(server, &b, 1), "accept4.read");
    R(accept4(fd, NULL, NULL, 0x10), "accept4.bad-flags");
    close(client), close(second);
}

CASE(connecting) {
    int fd = listener(), client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 77;
    struct sockaddr_in a = loopback(port_of(fd));
    socklen_t length = sizeof error;
    R(connect(client, (struct sockaddr *)&a, sizeof a), "connect");
    struct pollfd p = {.fd = client, .events = POLLOUT};
    R(poll(&p, 1, 3000), "poll");
    R(p.revents, "events");
    R(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), "error");
    R(error, "error.value");
    R(connect(client, (struct sockaddr *)&a, sizeof a), "again");
    R(connect(client, (struct sockaddr *)&a, sizeof a), "third");
}

CASE(refused) {
    int fd = bound(SOCK_STREAM), client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 77;
    struct sockaddr_in a = loopback(port_of(fd));
    socklen_t length = sizeof error;
    R(connect(client, (struct sockaddr *)&a, sizeof a), "connect");
    struct pollfd p = {.fd = client, .events = POLLOUT};
    R(poll(&p, 1, 3000), "poll");
    R(p.revents, "events");
    R(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), "error");
    YES(error == ECONNREFUSED, "error.value");
    R(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), "error-again");
    R(error, "error-again.value");
}

CASE(partial_write) {
    int sv[2];
    static char big[8 << 20];
    unix_pair(SOCK_STREAM, sv);
    set_nonblocking(sv[0], true);
    long n = SIGN(write(sv[0], big, sizeof big), "write");
    YES(n > 0 && n < (long)sizeof big, "partial");
    R(write(sv[0], big, sizeof big), "write-again");
    long all = 0, m;
    while ((m = recv(sv[1], big, sizeof big, MSG_DONTWAIT)) > 0) all += m;
    YES(all == n, "all-of-it");
}

CASE(switch_while_waiting) {
    int sv[2];
    char b;
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    set_nonblocking(sv[0], true);
    pause_ms(20);
    WAITS(&d, "still-waits");
    R(recv(sv[0], &b, 1, 0), "another");
    R(write(sv[1], "x", 1), "write");
    E(&d, "first");
}

CASE(pipes) {
    int p[2];
    char b;
    R(pipe2(p, O_NONBLOCK), "pipe2");
    R(read(p[0], &b, 1), "read");
    static char block[65536];
    while (write(p[1], block, sizeof block) > 0) {
    }
    R(write(p[1], block, 1), "write");
}
