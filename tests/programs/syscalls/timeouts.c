/* Calls that wait for so long and no longer. */
#define PROGRAM "timeouts"
#include "call.h"

static struct timespec begun;
#define BEGIN() (begun = now(CLOCK_MONOTONIC))
#define LASTED(ms, ...) YES(ms_since(begun) >= (ms) - 1 && ms_since(begun) < (ms) + 2000, __VA_ARGS__)

/* Of sockets. The kernel counts them in ticks, rounded up, and of the first tick a part is over: of
 * 41 ms 40 are left with ticks of 1, 3.3, 4 and 10 ms, but of 30 there may be 28. */
#define LIMIT 41

static void limit(int fd, int option, int ms) {
    struct timeval t = {ms / 1000, ms % 1000 * 1000};
    NEED(setsockopt(fd, SOL_SOCKET, option, &t, sizeof t) == 0);
}

CASE(receive) {
    int sv[2];
    char b[4];
    struct iovec part = {b, 4};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    unix_pair(SOCK_STREAM, sv);
    limit(sv[0], SO_RCVTIMEO, LIMIT);
    BEGIN(), R(recv(sv[0], b, 4, 0), "recv"), LASTED(LIMIT, "recv.lasted");
    BEGIN(), R(read(sv[0], b, 4), "read"), LASTED(LIMIT, "read.lasted");
    BEGIN(), R(readv(sv[0], &part, 1), "readv"), LASTED(LIMIT, "readv.lasted");
    BEGIN(), R(recvmsg(sv[0], &message, 0), "recvmsg"), LASTED(LIMIT, "recvmsg.lasted");
    BEGIN(), R(recvfrom(sv[0], b, 4, 0, NULL, NULL), "recvfrom"), LASTED(LIMIT, "recvfrom.lasted");
    NEED(write(sv[1], "ab", 2) == 2);
    BEGIN(), R(recv(sv[0], b, 4, MSG_WAITALL), "waitall-part"), LASTED(LIMIT, "waitall-part.lasted");
    NEED(write(sv[1], "ab", 2) == 2);
    R(recv(sv[0], b, 4, 0), "there");
    limit(sv[0], SO_RCVTIMEO, 0);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    pause_ms(50);
    WAITS(&d, "no-limit.waits");
    NEED(write(sv[1], "ab", 2) == 2);
    E(&d, "no-limit.recv");
}

CASE(receive_tcp_and_udp) {
    int sv[2];
    char b[4];
    tcp_pair(sv);
    limit(sv[0], SO_RCVTIMEO, LIMIT);
    BEGIN(), R(recv(sv[0], b, 4, 0), "tcp"), LASTED(LIMIT, "tcp.lasted");
    both_closed(sv);
    udp_pair(sv);
    limit(sv[0], SO_RCVTIMEO, LIMIT);
    BEGIN(), R(recv(sv[0], b, 4, 0), "udp"), LASTED(LIMIT, "udp.lasted");
}

CASE(send_limit) {
    int sv[2];
    static char block[1 << 20];
    unix_pair(SOCK_STREAM, sv);
    limit(sv[0], SO_SNDTIMEO, LIMIT);
    BEGIN(), SIGN(send(sv[0], block, sizeof block, 0), "part"), LASTED(LIMIT, "part.lasted");
    filled(sv[0]);
    BEGIN(), R(send(sv[0], block, 8, 0), "send"), LASTED(LIMIT, "send.lasted");
    BEGIN(), R(write(sv[0], block, 8), "write"), LASTED(LIMIT, "write.lasted");
}

CASE(accept_limit) {
    int fd = listener();
    limit(fd, SO_RCVTIMEO, LIMIT);
    BEGIN(), R(accept(fd, NULL, NULL), "accept"), LASTED(LIMIT, "accept.lasted");
    BEGIN(), R(accept4(fd, NULL, NULL, 0), "accept4"), LASTED(LIMIT, "accept4.lasted");
}

CASE(set_while_waiting) {
    int sv[2];
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    limit(sv[0], SO_RCVTIMEO, 20);
    pause_ms(60);
    WAITS(&d, "still-waits");
    NEED(write(sv[1], "x", 1) == 1);
    E(&d, "recv");
}

CASE(by_raw_setsockopt) {
    int sv[2];
    char b;
    struct timeval t = {0, LIMIT * 1000};
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[1], "x", 1) == 1 && read(sv[0], &b, 1) == 1);
    R(syscall(SYS_setsockopt, sv[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), "raw");
    BEGIN(), R(recv(sv[0], &b, 1, 0), "recv"), LASTED(LIMIT, "recv.lasted");
}

CASE(value) {
    int sv[2];
    struct timeval t = {0};
    socklen_t length = sizeof t;
    unix_pair(SOCK_STREAM, sv);
    limit(sv[0], SO_RCVTIMEO, 2500);
    R(getsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &t, &length), "get");
    R(t.tv_sec, "seconds");
    t.tv_usec = 2000000;
    R(setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), "bad-microseconds");
    R(setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &t, 4), "too-short");
}

CASE(waiting_for_events) {
    int sv[2];
    unix_pair(SOCK_STREAM, sv);
    struct pollfd p = {.fd = sv[0], .events = POLLIN};
    struct timespec t = {0, 30000000};
    struct timeval v = {0, 30000};
    fd_set set;
    BEGIN(), R(poll(&p, 1, 30), "poll"), LASTED(30, "poll.lasted");
    BEGIN(), R(ppoll(&p, 1, &t, NULL), "ppoll"), LASTED(30, "ppoll.lasted");
    R(t.tv_nsec, "ppoll.unchanged");
    FD_ZERO(&set); FD_SET(sv[0], &set);
    BEGIN(), R(select(sv[0] + 1, &set, NULL, NULL, &v), "select"), LASTED(30, "select.lasted");
    R(v.tv_usec, "select.rest");
    R(FD_ISSET(sv[0], &set), "select.set");
    FD_SET(sv[0], &set);
    BEGIN(), R(pselect(sv[0] + 1, &set, NULL, NULL, &t, NULL), "pselect"), LASTED(30, "pselect.lasted");
    R(t.tv_nsec, "pselect.unchanged");
    int e = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    R(epoll_ctl(e, EPOLL_CTL_ADD, sv[0], &event), "epoll_ctl");
    BEGIN(), R(epoll_wait(e, &event, 1, 30), "epoll_wait"), LASTED(30, "epoll_wait.lasted");
    BEGIN(), R(epoll_pwait(e, &event, 1, 30, NULL), "epoll_pwait"), LASTED(30, "epoll_pwait.lasted");
    BEGIN(), R(epoll_pwait2(e, &event, 1, &t, NULL), "epoll_pwait2"), LASTED(30, "epoll_pwait2.lasted");
    BEGIN(), R(poll(NULL, 0, 30), "poll-nothing"), LASTED(30, "poll-nothing.lasted");
    v = (struct timeval){0, 30000};
    BEGIN(), R(select(0, NULL, NULL, NULL, &v), "select-nothing"), LASTED(30, "select-nothing.lasted");
    R(poll(&p, 1, 0), "poll-0");
    R(epoll_wait(e, &event, 1, 0), "epoll_wait-0");
    v = (struct timeval){0, 0}, FD_SET(sv[0], &set);
    R(select(sv[0] + 1, &set, NULL, NULL, &v), "select-0");
    t = (struct timespec){0, -1};
    R(ppoll(&p, 1, &t, NULL), "ppoll-negative");
    v = (struct timeval){-1, 0};
    R(select(sv[0] + 1, &set, NULL, NULL, &v), "select-negative");
}

CASE(rest_of_select) {
    int sv[2];
    fd_set set;
    struct timeval v = {5, 0};
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[1], "x", 1) == 1);
    FD_ZERO(&set); FD_SET(sv[0], &set);
    R(select(sv[0] + 1, &set, NULL, NULL, &v), "select");
    YES(v.tv_sec == 4 || (v.tv_sec == 5 && v.tv_usec == 0), "rest");
}

CASE(several_messages) {
    int sv[2];
    static char b[4][16];
    struct iovec parts[4];
    struct mmsghdr messages[4] = {0};
    unix_pair(SOCK_DGRAM, sv);
    for (int i = 0; i < 4; i++) {
        parts[i] = (struct iovec){b[i], 16};
        messages[i].msg_hdr.msg_iov = &parts[i], messages[i].msg_hdr.msg_iovlen = 1;
    }
    NEED(write(sv[1], "one", 3) == 3 && write(sv[1], "four", 4) == 4);
    struct timespec t = {0, 0};
    BEGIN(), R(recvmmsg(sv[0], messages, 2, 0, &t), "two");
    R(messages[0].msg_len, "two.length-1");
    NEED(write(sv[1], "one", 3) == 3 && write(sv[1], "four", 4) == 4);
    R(recvmmsg(sv[0], messages, 4, MSG_WAITFORONE, NULL), "wait-for-one");
    R(recvmmsg(sv[0], messages, 4, MSG_DONTWAIT, NULL), "dontwait");
    limit(sv[0], SO_RCVTIMEO, LIMIT);
    NEED(write(sv[1], "one", 3) == 3);
    BEGIN(), R(recvmmsg(sv[0], messages, 4, 0, NULL), "part"), LASTED(LIMIT, "part.lasted");
    t = (struct timespec){0, 10000000};
    BEGIN(), R(recvmmsg(sv[0], messages, 4, 0, &t), "none"), LASTED(LIMIT, "none.lasted");
    t.tv_nsec = -1;
    R(recvmmsg(sv[0], messages, 4, 0, &t), "negative");
}

CASE(later_than_begun) {
    int sv[2];
    unix_pair(SOCK_STREAM, sv);
    limit(sv[0], SO_RCVTIMEO, 5000);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    pause_ms(30);
    NEED(write(sv[1], "x", 1) == 1);
    BEGIN();
    E(&d, "recv");
    YES(ms_since(begun) < 2000, "at-once");
}
