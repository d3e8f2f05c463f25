/* Messages with borders: UDP, and unix sockets of both kinds. */
#define PROGRAM "datagrams"
#include "call.h"

static int sv[2];
static char b[70000];

CASE(borders) {
    static const int TYPES[] = {SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 3; i++) {
        if (i == 2) udp_pair(sv);
        else unix_pair(TYPES[i], sv);
        R(write(sv[0], "one", 3), "%d.write", i);
        R(send(sv[0], "three", 5, 0), "%d.send", i);
        R(send(sv[0], "", 0, 0), "%d.empty", i);
        R(write(sv[0], "end", 3), "%d.write-2", i);
        R(read(sv[1], b, 64), "%d.read", i);
        R(read(sv[1], b, 2), "%d.short", i);
        R(recv(sv[1], b, 64, 0), "%d.empty-read", i);
        R(recv(sv[1], b, 64, MSG_WAITALL), "%d.waitall", i);
        R(recv(sv[1], b, 64, MSG_DONTWAIT), "%d.nothing", i);
        both_closed(sv);
    }
}

CASE(addresses) {
    int a = bound(SOCK_DGRAM), c = bound(SOCK_DGRAM);
    struct sockaddr_in to = loopback(port_of(c)), from = {0};
    socklen_t length = sizeof from;
    R(sendto(a, "abc", 3, 0, (struct sockaddr *)&to, sizeof to), "sendto");
    R(recvfrom(c, b, 64, 0, (struct sockaddr *)&from, &length), "recvfrom");
    YES(ntohs(from.sin_port) == port_of(a), "from");
    R(sendto(c, "back", 4, 0, (struct sockaddr *)&from, length), "answer");
    R(read(a, b, 64), "read");
    R(send(a, "x", 1, 0), "no-destination");
    R(sendto(a, "x", 1, 0, (struct sockaddr *)&to, 3), "short-address");
    R(sendto(a, b, 65508, 0, (struct sockaddr *)&to, sizeof to), "too-long");
    R(sendto(a, b, 65507, 0, (struct sockaddr *)&to, sizeof to), "longest");
    R(recv(c, b, sizeof b, 0), "longest.recv");
    R(connect(a, (struct sockaddr *)&to, sizeof to), "connect");
    R(send(a, "abc", 3, 0), "send");
    R(connect(a, &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(struct sockaddr)), "disconnect");
    R(send(a, "abc", 3, 0), "send-after");
    R(recv(c, b, 64, 0), "recv");
    struct iovec part = {"msg", 3};
    struct msghdr m = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &part, .msg_iovlen = 1};
    R(sendmsg(a, &m, 0), "sendmsg");
    struct iovec in = {b, 64};
    m = (struct msghdr){.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &in, .msg_iovlen = 1};
    R(recvmsg(c, &m, 0), "recvmsg");
    R(m.msg_namelen, "recvmsg.length");
}

CASE(nobody_listens) {
    udp_pair(sv);
    close(sv[1]);
    R(send(sv[0], "x", 1, 0), "send");
    NEED(poll(&(struct pollfd){.fd = sv[0], .events = POLLIN}, 1, 2000) == 1);
    R(recv(sv[0], b, 1, 0), "recv");
    R(recv(sv[0], b, 1, MSG_DONTWAIT), "recv-again");
}

CASE(unix_ends) {
    signal(SIGPIPE, SIG_IGN);
    unix_pair(SOCK_DGRAM, sv);
    close(sv[1]);
    R(send(sv[0], "x", 1, 0), "dgram.send");
    R(write(sv[0], "x", 1), "dgram.write");
    R(recv(sv[0], b, 1, MSG_DONTWAIT), "dgram.recv");
    unix_pair(SOCK_SEQPACKET, sv);
    NEED(write(sv[0], "last", 4) == 4);
    close(sv[0]);
    R(read(sv[1], b, 64), "seq.last");
    R(read(sv[1], b, 64), "seq.end");
    R(write(sv[1], "x", 1), "seq.write");
}

DEED(do_short_write, write(d->fd, "full", 4))
CASE(queue_full) {
    unix_pair(SOCK_DGRAM, sv);
    long count = 0;
    while (send(sv[0], "x", 1, MSG_DONTWAIT) == 1) count++;
    R(send(sv[0], "x", 1, MSG_DONTWAIT), "full");
    struct deed d = {0};
    start(&d, do_short_write, sv[0]);
    WAITS(&d, "waits");
    while (!is_done(&d.other)) count -= recv(sv[1], b, 64, MSG_DONTWAIT) == 1;
    E(&d, "write");
    while (recv(sv[1], b, 64, MSG_DONTWAIT) == 1) count--;
    R(count, "none-lost");
}

CASE(several) {
    struct iovec parts[5];
    struct mmsghdr m[5] = {0};
    for (int i = 0; i < 5; i++) {
        parts[i] = (struct iovec){b + 100 * i, (size_t)i + 1};
        m[i].msg_hdr.msg_iov = &parts[i], m[i].msg_hdr.msg_iovlen = 1;
    }
    udp_pair(sv);
    R(sendmmsg(sv[0], m, 5, 0), "sendmmsg");
    for (int i = 0; i < 5; i++) R(m[i].msg_len, "sent.%d", i), parts[i].iov_len = 100;
    R(recvmmsg(sv[1], m, 3, 0, NULL), "recvmmsg");
    R(recvmmsg(sv[1], m, 5, MSG_DONTWAIT, NULL), "rest");
    for (int i = 0; i < 2; i++) R(m[i].msg_len, "received.%d", i);
    R(sendmmsg(sv[0], m, 0, 0), "none");
    R(recvmmsg(sv[0], m, 0, MSG_DONTWAIT, NULL), "receive-none");
    static struct mmsghdr many[1100];
    for (int i = 0; i < 1100; i++) many[i].msg_hdr = m[0].msg_hdr;
    unix_pair(SOCK_DGRAM, sv);
    SIGN(sendmmsg(sv[0], many, 1100, MSG_DONTWAIT), "many");
    parts[2].iov_len = 100000;
    int size = 4608;
    setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    while (recv(sv[1], b, 64, MSG_DONTWAIT) >= 0) {
    }
    R(sendmmsg(sv[0], m, 5, MSG_DONTWAIT), "one-too-long");
    R(sendmmsg(sv[0], m + 2, 3, MSG_DONTWAIT), "first-too-long");
}

CASE(late_datagrams) {
    udp_pair(sv);
    for (int i = 0; i < 20; i++) {
        struct deed d = {0};
        start(&d, do_recv, sv[1]);
        NEED(send(sv[0], b, (size_t)i, 0) == i);
        E(&d, "%d", i);
    }
}

CASE(two_receivers) {
    udp_pair(sv);
    struct deed d[2] = {0};
    start(&d[0], do_recv, sv[1]);
    start(&d[1], do_recv, sv[1]);
    NEED(send(sv[0], "ab", 2, 0) == 2 && send(sv[0], "cd", 2, 0) == 2);
    E(&d[0], "first");
    E(&d[1], "second");
    YES(d[0].own[0] != d[1].own[0], "distinct");
}
