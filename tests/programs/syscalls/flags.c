/* Flags of single calls. */
#define PROGRAM "flags"
#include "call.h"

static int sv[2];
static char b[64];

CASE(peek) {
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "bytes", 5) == 5);
    R(recv(sv[1], b, 3, MSG_PEEK), "first");
    R(recv(sv[1], b, 64, MSG_PEEK), "all");
    R(recv(sv[1], b, 64, MSG_PEEK | MSG_DONTWAIT), "dontwait");
    R(recv(sv[1], b, 64, 0), "taken");
    R(recv(sv[1], b, 64, MSG_PEEK | MSG_DONTWAIT), "nothing");
    struct deed d = {.flags = MSG_PEEK};
    start(&d, do_recv, sv[1]);
    WAITS(&d, "waits");
    NEED(write(sv[0], "abc", 3) == 3);
    E(&d, "peek-later");
    R(recv(sv[1], b, 64, 0), "still-there");
}

CASE(all) {
    tcp_pair(sv);
    struct deed d = {.flags = MSG_WAITALL, .size = 10, .bytes = b};
    start(&d, do_recv, sv[1]);
    NEED(write(sv[0], "1234", 4) == 4);
    pause_ms(10);
    WAITS(&d, "waits");
    NEED(write(sv[0], "5678", 4) == 4);
    pause_ms(10);
    WAITS(&d, "waits-2");
    NEED(write(sv[0], "90rest", 6) == 6);
    E(&d, "ten");
    R(recv(sv[1], b, 64, 0), "rest");
    d = (struct deed){.flags = MSG_WAITALL, .size = 10, .bytes = b};
    start(&d, do_recv, sv[1]);
    NEED(write(sv[0], "1234", 4) == 4);
    shutdown(sv[0], SHUT_WR);
    E(&d, "until-the-end");
    unix_pair(SOCK_STREAM, sv);
    d = (struct deed){.flags = MSG_WAITALL | MSG_PEEK, .size = 4, .bytes = b};
    NEED(write(sv[0], "12", 2) == 2);
    start(&d, do_recv, sv[1]);
    for (int i = 0; i < 50 && !is_done(&d.other); i++) pause_ms(10);
    if (!is_done(&d.other)) NEED(write(sv[0], "34", 2) == 2);
    E(&d, "peek");
}

CASE(truncated) {
    udp_pair(sv);
    NEED(write(sv[0], "datagram", 8) == 8 && write(sv[0], "datagram", 8) == 8 && write(sv[0], "datagram", 8) == 8);
    R(recv(sv[1], b, 3, MSG_TRUNC), "real-length");
    R(recv(sv[1], b, 3, MSG_TRUNC | MSG_PEEK), "peek");
    R(recv(sv[1], b, 3, 0), "short");
    struct iovec part = {b, 3};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    R(recvmsg(sv[1], &m, 0), "recvmsg");
    R(m.msg_flags, "recvmsg.flags");
    tcp_pair(sv);
    NEED(write(sv[0], "stream", 6) == 6 && arrives(sv[1]));
    R(recv(sv[1], NULL, 4, MSG_TRUNC), "thrown-away");
    R(recv(sv[1], b, 64, 0), "left");
}

CASE(out_of_band) {
    tcp_pair(sv);
    R(recv(sv[1], b, 1, MSG_OOB), "none");
    R(send(sv[0], "abc", 3, MSG_OOB), "send");
    NEED(poll(&(struct pollfd){.fd = sv[1], .events = POLLPRI}, 1, 2000) == 1);
    R(recv(sv[1], b, 64, MSG_OOB), "urgent");
    TEXT(b, 1, "urgent.bytes");
    R(recv(sv[1], b, 64, 0), "ordinary");
    R(recv(sv[1], b, 64, MSG_OOB), "taken");
    int on = 1;
    setsockopt(sv[1], SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
    R(send(sv[0], "xyz", 3, MSG_OOB), "inline.send");
    NEED(poll(&(struct pollfd){.fd = sv[1], .events = POLLPRI}, 1, 2000) == 1);
    R(recv(sv[1], b, 64, 0), "before-mark");
    R(sockatmark(sv[1]), "at-mark");
    R(recv(sv[1], b, 64, 0), "mark");
    unix_pair(SOCK_DGRAM, sv);
    R(send(sv[0], "x", 1, MSG_OOB), "dgram");
    R(recv(sv[0], b, 1, MSG_OOB | MSG_DONTWAIT), "dgram.recv");
}

CASE(more_to_come) {
    tcp_pair(sv);
    R(send(sv[0], "12", 2, MSG_MORE), "more");
    R(send(sv[0], "34", 2, 0), "last");
    R(recv(sv[1], b, 4, MSG_WAITALL), "recv");
    udp_pair(sv);
    R(send(sv[0], "12", 2, MSG_MORE), "udp.more");
    R(send(sv[0], "34", 2, 0), "udp.last");
    R(recv(sv[1], b, 64, 0), "udp.one-datagram");
}

CASE(others) {
    unix_pair(SOCK_STREAM, sv);
    R(send(sv[0], "x", 1, MSG_CONFIRM | MSG_DONTROUTE), "confirm");
    R(send(sv[0], "x", 1, MSG_EOR), "eor");
    R(recv(sv[1], b, 64, MSG_ERRQUEUE | MSG_DONTWAIT), "errqueue");
    R(recv(sv[1], b, 64, MSG_DONTWAIT | MSG_CMSG_CLOEXEC), "cmsg-cloexec");
    R(send(sv[0], "x", 1, 0x40000000), "unknown");
    udp_pair(sv);
    R(recv(sv[1], b, 64, MSG_ERRQUEUE), "udp.errqueue");
    unix_pair(SOCK_SEQPACKET, sv);
    R(send(sv[0], "record", 6, MSG_EOR), "seq.eor");
    struct iovec part = {b, 64};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    R(recvmsg(sv[1], &m, 0), "seq.recvmsg");
    R(m.msg_flags, "seq.flags");
}

CASE(peek_offset) {
    int offset = 2;
    unix_pair(SOCK_STREAM, sv);
    setsockopt(sv[1], SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset);
    NEED(write(sv[0], "abcdef", 6) == 6);
    R(recv(sv[1], b, 2, MSG_PEEK), "peek");
    TEXT(b, 2, "bytes");
    R(recv(sv[1], b, 2, MSG_PEEK), "peek-2");
    TEXT(b, 2, "bytes-2");
}
