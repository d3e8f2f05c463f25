/* Bytes that move in the kernel: sendfile, splice, tee, vmsplice, copy_file_range. */
#define PROGRAM "moving"
#include "call.h"

static int sv[2], p[2];
static char b[1 << 16];

static int file_of(long length) {
    int fd = scratch();
    for (long i = 0; i < (long)sizeof b; i++) b[i] = (char)('a' + i % 26);
    for (long done = 0; done < length;) {
        long n = length - done < (long)sizeof b ? length - done : (long)sizeof b;
        NEED(write(fd, b, (size_t)n) == n);
        done += n;
    }
    NEED(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

CASE(by_sendfile) {
    int fd = file_of(100);
    off_t offset = 10;
    tcp_pair(sv);
    R(sendfile(sv[0], fd, NULL, 20), "position");
    R(lseek(fd, 0, SEEK_CUR), "position.after");
    R(sendfile(sv[0], fd, &offset, 30), "offset");
    R(offset, "offset.after");
    R(lseek(fd, 0, SEEK_CUR), "offset.position");
    R(recv(sv[1], b, 50, MSG_WAITALL), "recv");
    TEXT(b, 50, "bytes");
    offset = 95;
    R(sendfile(sv[0], fd, &offset, 30), "to-the-end");
    R(sendfile(sv[0], fd, &offset, 30), "at-the-end");
    R(sendfile(sv[0], fd, &offset, 0), "nothing");
    offset = -1;
    R(sendfile(sv[0], fd, &offset, 5), "negative");
    R(sendfile(sv[0], sv[1], NULL, 5), "from-socket");
    R(sendfile(sv[0], 499, NULL, 5), "closed");
    R(sendfile(499, fd, NULL, 5), "to-closed");
    R(sendfile(sv[0], fd, (off_t *)8, 5), "bad-memory");
    R(sendfile64(sv[0], fd, NULL, 5), "sendfile64");
    signal(SIGPIPE, SIG_IGN);
    unix_pair(SOCK_STREAM, sv);
    close(sv[1]);
    R(sendfile(sv[0], fd, NULL, 5), "broken");
}

DEED(by_deed_sendfile, sendfile(d->fd, d->flags, NULL, 1 << 20))
CASE(large_sendfile) {
    int fd = file_of(1 << 20);
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {.flags = fd};
    start(&d, by_deed_sendfile, sv[0]);
    WAITS(&d, "waits");
    long got = 0, n, wrong = 0;
    while (got < 1 << 20 && (n = read(sv[1], b, sizeof b)) > 0) {
        for (long i = 0; i < n; i++) wrong += b[i] != (char)(97 + (got + i) % (1 << 16) % 26);
        got += n;
    }
    E(&d, "sendfile");
    R(got, "received");
    R(wrong, "wrong");
    set_nonblocking(sv[0], true);
    lseek(fd, 0, SEEK_SET);
    long part = sendfile(sv[0], fd, NULL, 1 << 20);
    YES(part > 0 && part < 1 << 20, "part");
    R(sendfile(sv[0], fd, NULL, 100), "full");
}

CASE(by_splice) {
    unix_pair(SOCK_STREAM, sv);
    NEED(pipe(p) == 0 && write(p[1], "through a pipe", 14) == 14);
    R(splice(p[0], NULL, sv[0], NULL, 7, 0), "to-socket");
    R(recv(sv[1], b, 64, 0), "recv");
    TEXT(b, 7, "bytes");
    R(splice(p[0], NULL, sv[0], NULL, 100, SPLICE_F_MORE), "rest");
    R(splice(p[0], NULL, sv[0], NULL, 100, SPLICE_F_NONBLOCK), "empty");
    R(splice(sv[1], NULL, p[1], NULL, 100, 0), "from-socket");
    R(read(p[0], b, 64), "read");
    R(splice(sv[1], NULL, p[1], NULL, 100, SPLICE_F_NONBLOCK), "socket-empty");
    R(splice(sv[0], NULL, sv[1], NULL, 10, 0), "no-pipe");
    loff_t offset = 0;
    R(splice(sv[1], &offset, p[1], NULL, 10, 0), "offset");
    R(splice(p[0], NULL, 499, NULL, 10, 0), "closed");
    shutdown(sv[0], SHUT_WR);
    R(splice(sv[1], NULL, p[1], NULL, 10, 0), "end");
}

DEED(by_deed_splice, splice(d->fd, NULL, d->flags, NULL, 100, 0))
CASE(waiting_splice) {
    unix_pair(SOCK_STREAM, sv);
    NEED(pipe(p) == 0);
    struct deed d = {.flags = p[1]};
    start(&d, by_deed_splice, sv[1]);
    WAITS(&d, "from-socket.waits");
    NEED(write(sv[0], "abc", 3) == 3);
    E(&d, "from-socket");
    R(read(p[0], b, 64), "read");
    d = (struct deed){.flags = sv[0]};
    start(&d, by_deed_splice, p[0]);
    WAITS(&d, "to-socket.waits");
    NEED(write(p[1], "defg", 4) == 4);
    E(&d, "to-socket");
    R(read(sv[1], b, 64), "read-2");
}

CASE(others) {
    int q[2];
    NEED(pipe(p) == 0 && pipe(q) == 0 && write(p[1], "abcdef", 6) == 6);
    unix_pair(SOCK_STREAM, sv);
    R(tee(p[0], q[1], 100, 0), "tee");
    R(tee(sv[0], q[1], 100, 0), "tee-socket");
    R(read(q[0], b, 64), "read");
    struct iovec part = {"vm", 2};
    R(vmsplice(q[1], &part, 1, 0), "vmsplice");
    R(vmsplice(sv[0], &part, 1, 0), "vmsplice-socket");
    int a = file_of(50), c = scratch();
    R(copy_file_range(a, NULL, c, NULL, 40, 0), "copy");
    R(copy_file_range(a, NULL, sv[0], NULL, 40, 0), "copy-to-socket");
    R(splice(a, NULL, p[1], NULL, 5, 0), "file-to-pipe");
}
