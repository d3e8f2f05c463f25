/* Bytes from one end to the other, by every function that writes and every function that reads. */
#define PROGRAM "transfers"
#include "call.h"

typedef ssize_t (*Transfer)(int fd, char *bytes, size_t size);

static ssize_t by_write(int fd, char *b, size_t n) { return write(fd, b, n); }
static ssize_t by_send(int fd, char *b, size_t n) { return send(fd, b, n, 0); }
static ssize_t by_sendto(int fd, char *b, size_t n) { return sendto(fd, b, n, 0, NULL, 0); }
static ssize_t by_writev(int fd, char *b, size_t n) {
    struct iovec parts[3] = {{b, n / 2}, {b, 0}, {b + n / 2, n - n / 2}};
    return writev(fd, parts, 3);
}
static ssize_t by_sendmsg(int fd, char *b, size_t n) {
    struct iovec parts[2] = {{b, n / 2}, {b + n / 2, n - n / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(fd, &message, 0);
}
static ssize_t by_sendmmsg(int fd, char *b, size_t n) {
    struct iovec part = {b, n};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    int sent = sendmmsg(fd, &message, 1, 0);
    return sent == 1 ? (ssize_t)message.msg_len : -1;
}
static ssize_t by_read(int fd, char *b, size_t n) { return read(fd, b, n); }
static ssize_t by_recv(int fd, char *b, size_t n) { return recv(fd, b, n, 0); }
static ssize_t by_recvfrom(int fd, char *b, size_t n) { return recvfrom(fd, b, n, 0, NULL, NULL); }
static ssize_t by_readv(int fd, char *b, size_t n) {
    struct iovec parts[3] = {{b, 3}, {NULL, 0}, {b + 3, n - 3}};
    return readv(fd, parts, 3);
}
static ssize_t by_recvmsg(int fd, char *b, size_t n) {
    struct iovec parts[2] = {{b, 5}, {b + 5, n - 5}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return recvmsg(fd, &message, 0);
}
static ssize_t by_recvmmsg(int fd, char *b, size_t n) {
    struct iovec part = {b, n};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    int got = recvmmsg(fd, &message, 1, 0, NULL);
    return got == 1 ? (ssize_t)message.msg_len : got;
}

struct way {
    const char *name;
    Transfer transfer;
};
static const struct way OUT[] = {{"write", by_write},   {"send", by_send},       {"sendto", by_sendto},
                                 {"writev", by_writev}, {"sendmsg", by_sendmsg}, {"sendmmsg", by_sendmmsg}};
static const struct way IN[] = {{"read", by_read},   {"recv", by_recv},       {"recvfrom", by_recvfrom},
                                {"readv", by_readv}, {"recvmsg", by_recvmsg}, {"recvmmsg", by_recvmmsg}};

static void every_pair(int sv[2]) {
    for EACH(out, OUT) {
        for EACH(in, IN) {
            char text[32] = "", got[32] = "";
            int length = snprintf(text, sizeof text, "%s-%s", out->name, in->name);
            errno = UNTOUCHED;
            bool same = out->transfer(sv[0], text, (size_t)length) == length;
            same = same && in->transfer(sv[1], got, sizeof got - 1) == length && strcmp(text, got) == 0;
            SAID(same && errno == UNTOUCHED ? "same" : outcome(-1), "%s.%s", out->name, in->name);
        }
    }
    both_closed(sv);
}

CASE(unix_stream) {
    int sv[2];
    unix_pair(SOCK_STREAM, sv);
    every_pair(sv);
}

CASE(tcp) {
    int sv[2];
    tcp_pair(sv);
    every_pair(sv);
}

CASE(unix_dgram) {
    int sv[2];
    unix_pair(SOCK_DGRAM, sv);
    every_pair(sv);
}

CASE(seqpacket) {
    int sv[2];
    unix_pair(SOCK_SEQPACKET, sv);
    every_pair(sv);
}

CASE(udp) {
    int sv[2];
    udp_pair(sv);
    every_pair(sv);
}

static void wait_for(struct deed *d) { d->result = ((Transfer)d->bytes)(d->fd, d->own, 32); }

/* A reader that waits for what comes later. */
static void every_waiting_read(int sv[2]) {
    for EACH(in, IN) {
        struct deed d = {.bytes = (char *)in->transfer};
        start(&d, wait_for, sv[1]);
        WAITS(&d, "%s.waits", in->name);
        R(write(sv[0], "later", 5), "%s.write", in->name);
        E(&d, "%s.got", in->name);
        TEXT(d.own, 5, "%s.bytes", in->name);
    }
    both_closed(sv);
}

CASE(tcp_later) {
    int sv[2];
    tcp_pair(sv);
    every_waiting_read(sv);
}

CASE(unix_later) {
    int sv[2];
    unix_pair(SOCK_STREAM, sv);
    every_waiting_read(sv);
}

/* A writer that waits until somebody reads. */
CASE(full) {
    for EACH(out, OUT) {
        int sv[2];
        unix_pair(SOCK_STREAM, sv);
        long before = filled(sv[0]);
        struct deed d = {.bytes = (char *)out->transfer};
        start(&d, wait_for, sv[0]);
        WAITS(&d, "%s.waits", out->name);
        static char block[65536];
        long all = 0, n;
        while (all < before && (n = read(sv[1], block, sizeof block)) > 0) all += n;
        E(&d, "%s.sent", out->name);
        while (all < before + 32 && (n = read(sv[1], block, sizeof block)) > 0) all += n;
        YES(all == before + 32, "%s.nothing-lost", out->name);
        both_closed(sv);
    }
}

enum { BULK = 3 << 20 };
static char *bulk(void) {
    static char bytes[BULK];
    uint32_t state = 12345;
    for (int i = 0; i < BULK; i++) bytes[i] = (char)((state = state * 1664525 + 1013904223) >> 24);
    return bytes;
}
static uint32_t sum_of(const char *bytes, long length) {
    uint32_t sum = 2166136261u;
    for (long i = 0; i < length; i++) sum = (sum ^ (unsigned char)bytes[i]) * 16777619u;
    return sum;
}
static void send_bulk(struct deed *d) {
    long done = 0, n;
    // Pieces of many lengths: some fit, some go out in parts.
    for (long piece = 1; done < BULK; done += n, piece = piece * 5 % 300007 + 1) {
        n = d->flags ? send(d->fd, d->bytes + done, (size_t)(piece < BULK - done ? piece : BULK - done), 0)
                     : write(d->fd, d->bytes + done, (size_t)(BULK - done));
        if (n <= 0) break;
    }
    d->result = done;
}
static void carry(int sv[2], bool pieces, const char *name) {
    static char got[BULK];
    struct deed d = {.bytes = bulk(), .size = BULK, .flags = pieces};
    start(&d, send_bulk, sv[0]);
    long all = 0, n;
    while (all < BULK && (n = recv(sv[1], got + all, (size_t)(BULK - all), 0)) > 0) all += n;
    E(&d, "%s.sent", name);
    R(all, "%s.received", name);
    YES(sum_of(got, BULK) == sum_of(d.bytes, BULK), "%s.same", name);
    both_closed(sv);
}

CASE(bulk_bytes) {
    int sv[2];
    tcp_pair(sv);
    carry(sv, false, "tcp");
    tcp_pair(sv);
    carry(sv, true, "tcp-pieces");
    unix_pair(SOCK_STREAM, sv);
    carry(sv, false, "unix");
    unix_pair(SOCK_STREAM, sv);
    carry(sv, true, "unix-pieces");
}

CASE(nothing) {
    int sv[2];
    char b[8];
    unix_pair(SOCK_STREAM, sv);
    R(write(sv[0], b, 0), "write-0");
    R(send(sv[0], b, 0, 0), "send-0");
    R(read(sv[1], b, 0), "read-0");
    R(writev(sv[0], NULL, 0), "writev-none");
    R(readv(sv[1], NULL, 0), "readv-none");
    R(recv(sv[1], b, 8, MSG_DONTWAIT), "recv-nothing");
    both_closed(sv);
}

CASE(end) {
    int sv[2];
    char b[8];
    tcp_pair(sv);
    R(write(sv[0], "last", 4), "write");
    R(shutdown(sv[0], SHUT_WR), "shutdown");
    R(recv(sv[1], b, 8, MSG_WAITALL), "the-rest");
    R(read(sv[1], b, 8), "end");
    R(recv(sv[1], b, 8, 0), "end-again");
    R(write(sv[1], "back", 4), "other-way");
    R(read(sv[0], b, 8), "arrives");
    R(close(sv[0]), "close");
    R(close(sv[1]), "close-2");
}

CASE(vectors) {
    int sv[2];
    static struct iovec many[1025];
    volatile int negative = -1;
    static char b[1025];
    unix_pair(SOCK_STREAM, sv);
    for (int i = 0; i < 1025; i++) many[i] = (struct iovec){b + i, 1};
    R(writev(sv[0], many, 1024), "1024");
    R(writev(sv[0], many, 1025), "1025");
    R(writev(sv[0], many, negative), "negative");
    R(readv(sv[1], many, 1000), "read-1000");
    R(readv(sv[1], many, 1024), "read-rest");
    many[0].iov_len = SIZE_MAX, many[1].iov_len = SIZE_MAX;
    R(writev(sv[0], many, 2), "too-long");
    R(readv(sv[1], many, 2), "read-too-long");
    struct msghdr message = {.msg_iov = many, .msg_iovlen = 1025};
    R(sendmsg(sv[0], &message, 0), "sendmsg-1025");
    R(recvmsg(sv[1], &message, MSG_DONTWAIT), "recvmsg-1025");
    both_closed(sv);
}

CASE(addresses) {
    int sv[2];
    char b[8];
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    tcp_pair(sv);
    NEED(write(sv[0], "x", 1) == 1);
    R(recvfrom(sv[1], b, 8, 0, (struct sockaddr *)&from, &length), "tcp");
    R(length, "tcp.length");
    both_closed(sv);
    udp_pair(sv);
    NEED(write(sv[0], "x", 1) == 1 && write(sv[0], "y", 1) == 1 && write(sv[0], "z", 1) == 1);
    length = sizeof from;
    R(recvfrom(sv[1], b, 8, 0, (struct sockaddr *)&from, &length), "udp");
    R(length, "udp.length");
    YES(((struct sockaddr_in *)&from)->sin_port == htons((uint16_t)port_of(sv[0])), "udp.port");
    length = 4;
    R(recvfrom(sv[1], b, 8, 0, (struct sockaddr *)&from, &length), "udp.short");
    R(length, "udp.short.length");
    length = (socklen_t)-1;
    R(recvfrom(sv[1], b, 8, MSG_DONTWAIT, (struct sockaddr *)&from, &length), "udp.negative");
    both_closed(sv);
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1);
    length = sizeof from;
    R(recvfrom(sv[1], b, 8, 0, (struct sockaddr *)&from, &length), "unix");
    R(length, "unix.length");
    both_closed(sv);
}

CASE(bad_memory) {
    int sv[2];
    char *volatile bad = (char *)8;
    socklen_t length = 16;
    unix_pair(SOCK_STREAM, sv);
    R(write(sv[0], bad, 4), "write");
    R(send(sv[0], bad, 4, 0), "send");
    R(sendmsg(sv[0], (struct msghdr *)bad, 0), "sendmsg");
    R(writev(sv[0], (struct iovec *)bad, 1), "writev");
    R(sendmmsg(sv[0], (struct mmsghdr *)bad, 1, 0), "sendmmsg");
    NEED(write(sv[0], "data", 4) == 4);
    R(read(sv[1], bad, 4), "read");
    R(recvmsg(sv[1], (struct msghdr *)bad, 0), "recvmsg");
    R(readv(sv[1], (struct iovec *)bad, 1), "readv");
    R(recvmmsg(sv[1], (struct mmsghdr *)bad, 1, 0, NULL), "recvmmsg");
    R(getsockname(sv[0], (struct sockaddr *)bad, &length), "getsockname");
    R(getsockopt(sv[0], SOL_SOCKET, SO_TYPE, bad, &length), "getsockopt");
    R(setsockopt(sv[0], SOL_SOCKET, SO_KEEPALIVE, bad, 4), "setsockopt");
    R(poll((struct pollfd *)bad, 1, 0), "poll");
    R(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)bad), "socketpair");
    both_closed(sv);
}

CASE(not_for_sockets) {
    int sv[2];
    char b[8];
    struct iovec part = {b, 8};
    unix_pair(SOCK_STREAM, sv);
    R(pread(sv[0], b, 8, 0), "pread");
    R(pwrite(sv[0], b, 8, 0), "pwrite");
    R(preadv(sv[0], &part, 1, 0), "preadv");
    R(pwritev(sv[0], &part, 1, 0), "pwritev");
    R(lseek(sv[0], 0, SEEK_CUR), "lseek");
    R(fsync(sv[0]), "fsync");
    R(ftruncate(sv[0], 0), "ftruncate");
    R(fchdir(sv[0]), "fchdir");
    R(isatty(sv[0]) - 1, "isatty");
    YES(mmap(NULL, 4096, PROT_READ, MAP_SHARED, sv[0], 0) == MAP_FAILED, "mmap");
    both_closed(sv);
}
