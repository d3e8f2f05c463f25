/* Calls with several parts. */
#define PROGRAM "vectors"
#include "call.h"

static int sv[2];
static char b[64];
/* What the compiler would warn of. */
static struct iovec *volatile nowhere = (struct iovec *)8;
static volatile int negative = -1;

static struct msghdr of(struct iovec *parts, size_t count) {
    return (struct msghdr){.msg_iov = parts, .msg_iovlen = count};
}

CASE(filled_in_order) {
    struct iovec parts[3] = {{b, 2}, {b + 10, 3}, {b + 20, 8}};
    tcp_pair(sv);
    NEED(write(sv[0], "abcdefg", 7) == 7 && arrives(sv[1]));
    R(readv(sv[1], parts, 3), "readv");
    TEXT(b, 2, "first");
    TEXT(b + 10, 3, "second");
    TEXT(b + 20, 2, "third");
    R(b[22], "beyond");
}

CASE(empty_parts) {
    struct iovec parts[4] = {{NULL, 0}, {"ab", 2}, {NULL, 0}, {"c", 1}};
    unix_pair(SOCK_STREAM, sv);
    R(writev(sv[0], parts, 4), "writev");
    R(writev(sv[0], parts, 1), "writev-nothing");
    R(read(sv[1], b, 64), "read");
    TEXT(b, 3, "bytes");
    unix_pair(SOCK_DGRAM, sv);
    R(writev(sv[0], parts, 1), "dgram");
    R(recv(sv[1], b, 64, MSG_DONTWAIT), "dgram.nothing-sent");
}

CASE(too_many_parts) {
    static struct iovec parts[1025];
    for EACH(part, parts) *part = (struct iovec){b, 1};
    unix_pair(SOCK_STREAM, sv);
    R(writev(sv[0], parts, 1025), "writev");
    R(readv(sv[1], parts, 1025), "readv");
    struct msghdr m = of(parts, 1025);
    R(sendmsg(sv[0], &m, 0), "sendmsg");
    R(recvmsg(sv[1], &m, MSG_DONTWAIT), "recvmsg");
    R(writev(sv[0], parts, 1024), "most");
    R(readv(sv[1], parts, 1024), "most.read");
    R(writev(sv[0], parts, negative), "negative");
}

CASE(part_of_bad_memory) {
    struct iovec parts[2] = {{"abcd", 4}, {(void *)8, 4}};
    unix_pair(SOCK_DGRAM, sv);
    R(writev(sv[0], parts, 2), "writev");
    R(recv(sv[1], b, 64, MSG_DONTWAIT), "nothing-sent");
    NEED(write(sv[0], "abcdefgh", 8) == 8);
    parts[0].iov_base = b;
    R(readv(sv[1], parts, 2), "readv");
    R(writev(sv[0], nowhere, 2), "list");
}

CASE(lengths_that_overflow) {
    struct iovec parts[2] = {{b, SIZE_MAX / 2}, {b, SIZE_MAX / 2}};
    unix_pair(SOCK_STREAM, sv);
    parts[0].iov_len = (size_t)-1;
    R(writev(sv[0], parts, 1), "writev");
    R(readv(sv[1], parts, 1), "readv");
    struct msghdr m = of(parts, 1);
    R(sendmsg(sv[0], &m, 0), "sendmsg");
}

CASE(at_an_offset) {
    struct iovec part = {b, 4};
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "abcd", 4) == 4);
    R(preadv(sv[1], &part, 1, 0), "preadv");
    R(pwritev(sv[1], &part, 1, 0), "pwritev");
    R(preadv2(sv[1], &part, 1, 0, 0), "preadv2");
    R(pwritev2(sv[1], &part, 1, 0, 0), "pwritev2");
    R(preadv2(sv[1], &part, 1, -1, 0), "preadv2-here");
    R(pwritev2(sv[1], &part, 1, -1, 0), "pwritev2-here");
    R(preadv2(sv[0], &part, 1, -1, 0x40000000), "unknown-flag");
}

CASE(scattered_record) {
    struct iovec out[3] = {{"one", 3}, {"two", 3}, {"three", 5}}, in[2] = {{b, 4}, {b + 16, 4}};
    unix_pair(SOCK_SEQPACKET, sv);
    struct msghdr m = of(out, 3);
    R(sendmsg(sv[0], &m, 0), "sendmsg");
    R(sendmsg(sv[0], &m, 0), "sendmsg-2");
    m = of(in, 2);
    R(recvmsg(sv[1], &m, 0), "short");
    R((m.msg_flags & MSG_TRUNC) != 0, "short.truncated");
    TEXT(b + 16, 4, "short.bytes");
    m = of(in, 2);
    R(recvmsg(sv[1], &m, MSG_TRUNC), "real-length");
}

static void scatter(struct deed *d) {
    struct iovec parts[2] = {{d->own, 2}, {d->own + 8, 8}};
    d->result = readv(d->fd, parts, 2);
}
CASE(parts_on_the_stack_of_one_who_waits) {
    tcp_pair(sv);
    struct deed d = {0};
    start(&d, scatter, sv[1]);
    WAITS(&d, "waits");
    NEED(write(sv[0], "later", 5) == 5);
    E(&d, "readv");
    TEXT(d.own, 2, "first");
    TEXT(d.own + 8, 3, "second");
}

CASE(name_of_the_unnamed) {
    struct sockaddr_un from;
    struct iovec part = {b, 8};
    unix_pair(SOCK_DGRAM, sv);
    NEED(write(sv[0], "x", 1) == 1);
    struct msghdr m = of(&part, 1);
    m.msg_name = &from, m.msg_namelen = sizeof from;
    R(recvmsg(sv[1], &m, 0), "recvmsg");
    R(m.msg_namelen, "length");
    R(m.msg_flags, "flags");
}

CASE(control_that_is_wrong) {
    struct iovec part = {b, 1};
    union {
        struct cmsghdr header;
        char room[64];
    } control = {.header = {.cmsg_len = 3, .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    unix_pair(SOCK_STREAM, sv);
    struct msghdr m = of(&part, 1);
    m.msg_control = &control, m.msg_controllen = sizeof control.room;
    R(sendmsg(sv[0], &m, 0), "too-short");
    control.header.cmsg_len = 200;
    R(sendmsg(sv[0], &m, 0), "too-long");
    control.header.cmsg_len = CMSG_LEN(0), control.header.cmsg_type = 99;
    m.msg_controllen = CMSG_SPACE(0);
    R(sendmsg(sv[0], &m, 0), "type");
    R(recv(sv[1], b, 64, MSG_DONTWAIT), "nothing-sent");
}
