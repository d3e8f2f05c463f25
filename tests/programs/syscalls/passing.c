/* Descriptors and credentials that travel with messages. */
#define PROGRAM "passing"
#include "call.h"

static int sv[2];
static char b[16];

union control {
    struct cmsghdr header;
    char room[512];
};

static long sent(int fd, const int *numbers, int count) {
    union control control = {0};
    struct iovec part = {"m", 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    memcpy(CMSG_DATA(c), numbers, sizeof(int) * (size_t)count);
    return sendmsg(fd, &m, 0);
}

static int flags_received;
static long received(int fd, int *numbers, int *count, size_t room, int flags) {
    union control control = {0};
    struct iovec part = {b, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = room};
    *count = 0;
    long n = recvmsg(fd, &m, flags);
    int error = errno;
    flags_received = m.msg_flags;
    for (struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL; c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        int more = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(numbers + *count, CMSG_DATA(c), sizeof(int) * (size_t)more);
        *count += more;
    }
    errno = error;
    return n;
}

CASE(a_socket) {
    int other[2], got[8], count;
    unix_pair(SOCK_STREAM, sv);
    unix_pair(SOCK_STREAM, other);
    R(sent(sv[0], other, 1), "send");
    R(received(sv[1], got, &count, 512, 0), "receive");
    R(count, "count");
    R(flags_received, "flags");
    close(other[0]);
    R(write(got[0], "abc", 3), "write");
    R(read(other[1], b, 8), "read");
    struct deed d = {0};
    start(&d, do_recv, got[0]);
    WAITS(&d, "waits");
    R(write(other[1], "abc", 3), "write-back");
    E(&d, "recv");
    R(fcntl(got[0], F_GETFD), "no-cloexec");
}

CASE(cloexec) {
    int p[2], got[8], count;
    NEED(pipe(p) == 0);
    unix_pair(SOCK_STREAM, sv);
    R(sent(sv[0], p, 2), "send");
    R(received(sv[1], got, &count, 512, MSG_CMSG_CLOEXEC), "receive");
    R(count, "count");
    R(fcntl(got[0], F_GETFD), "cloexec");
    R(write(got[1], "abc", 3), "write");
    R(read(got[0], b, 8), "read");
}

CASE(over_a_stale_number) {
    int other[2], p[2], got[8], count;
    unix_pair(SOCK_STREAM, sv);
    unix_pair(SOCK_STREAM, other);
    NEED(pipe(p) == 0 && write(other[0], "x", 1) == 1 && read(other[1], b, 1) == 1 && write(p[1], "pipe", 4) == 4);
    int number = other[0];
    syscall(SYS_close, other[0]);
    R(sent(sv[0], p, 1), "send");
    R(received(sv[1], got, &count, 512, 0), "receive");
    R(got[0] == number, "same-number");
    R(read(got[0], b, 8), "read");
    R(recv(got[0], b, 8, 0), "recv");
}

CASE(many) {
    int numbers[50], got[60], count;
    unix_pair(SOCK_SEQPACKET, sv);
    for (int i = 0; i < 50; i++) numbers[i] = dup(sv[0]);
    R(sent(sv[0], numbers, 50), "send");
    R(received(sv[1], got, &count, 512, 0), "receive");
    R(count, "count");
    R(descriptors(), "open");
    for (int i = 0; i < 50; i++) close(got[i]);
    R(descriptors(), "open-after");
}

CASE(truncated) {
    int p[2], got[8], count;
    NEED(pipe(p) == 0);
    unix_pair(SOCK_STREAM, sv);
    int before = descriptors();
    R(sent(sv[0], p, 2), "send");
    R(received(sv[1], got, &count, CMSG_LEN(sizeof(int)), 0), "receive");
    R(count, "count");
    R(flags_received & MSG_CTRUNC, "flags");
    R(descriptors() - before, "more-open");
    R(sent(sv[0], p, 2), "send-2");
    R(recv(sv[1], b, 1, 0), "recv");
    R(descriptors() - before, "none-left");
    R(sent(sv[0], p, 2), "send-3");
    R(read(sv[1], b, 1), "read");
    R(descriptors() - before, "none-left-2");
}

CASE(peeked) {
    int p[2], got[8], count;
    NEED(pipe(p) == 0);
    unix_pair(SOCK_STREAM, sv);
    R(sent(sv[0], p, 1), "send");
    R(received(sv[1], got, &count, 512, MSG_PEEK), "peek");
    R(count, "peek.count");
    R(received(sv[1], got, &count, 512, 0), "receive");
    R(count, "count");
}

CASE(no_room) {
    int p[2], got[8], count;
    NEED(pipe(p) == 0);
    unix_pair(SOCK_STREAM, sv);
    R(sent(sv[0], p, 2), "send");
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int last = dup(0);
    close(last);
    limit.rlim_cur = (rlim_t)last + 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    R(received(sv[1], got, &count, 512, 0), "receive");
    R(count, "count");
    R(flags_received & MSG_CTRUNC, "flags");
}

CASE(wrong) {
    int numbers[2] = {499, 0}, count, got[8];
    unix_pair(SOCK_STREAM, sv);
    R(sent(sv[0], numbers, 1), "closed");
    int tcp[2];
    tcp_pair(tcp);
    R(sent(tcp[0], sv, 1), "tcp");
    numbers[0] = -1;
    R(sent(sv[0], numbers, 1), "negative");
    R(received(sv[1], got, &count, 512, MSG_DONTWAIT), "nothing-came");
}

CASE(to_a_child) {
    int fd = listener(), got[8], count;
    unix_pair(SOCK_STREAM, sv);
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        if (received(sv[1], got, &count, 512, 0) != 1 || count != 1) _exit(1);
        int server = accept(got[0], NULL, NULL);
        _exit(server >= 0 && read(server, b, 8) == 5 && write(server, b, 5) == 5 ? 5 : 2);
    }
    R(sent(sv[0], &fd, 1), "send");
    int client = connected_to(fd);
    R(write(client, "hello", 5), "write");
    R(recv(client, b, 5, MSG_WAITALL), "read");
    STATUS(child, "child");
}

CASE(several_messages) {
    int p[2];
    NEED(pipe(p) == 0);
    unix_pair(SOCK_DGRAM, sv);
    for (int i = 0; i < 3; i++) NEED(sent(sv[0], p, 1) == 1);
    union control controls[3] = {0};
    struct iovec part = {b, 1};
    struct mmsghdr m[3];
    for (int i = 0; i < 3; i++)
        m[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &controls[i], .msg_controllen = 512}};
    R(recvmmsg(sv[1], m, 3, 0, NULL), "recvmmsg");
    for (int i = 0; i < 3; i++) {
        struct cmsghdr *c = CMSG_FIRSTHDR(&m[i].msg_hdr);
        int number = -1;
        if (c) memcpy(&number, CMSG_DATA(c), sizeof number);
        struct stat about;
        R(number >= 0 ? fstat(number, &about) : -2, "%d", i);
    }
}

static void credentials(const char *who) {
    union control control = {0};
    struct iovec part = {b, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = 512};
    R(recvmsg(sv[1], &m, 0), "%s.recvmsg", who);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    struct ucred cred = {0};
    R(c ? c->cmsg_type : -2, "%s.type", who);
    if (c) memcpy(&cred, CMSG_DATA(c), sizeof cred);
    R(cred.pid == getpid() ? 1 : cred.pid == 0 ? 0 : 2, "%s.pid", who);
    YES(cred.uid == getuid() && cred.gid == getgid(), "%s.user", who);
}

CASE(passcred) {
    int on = 1;
    unix_pair(SOCK_STREAM, sv);
    R(setsockopt(sv[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), "option");
    NEED(write(sv[0], "x", 1) == 1);
    credentials("write");
    NEED(send(sv[0], "x", 1, 0) == 1);
    credentials("send");
    struct deed d = {.bytes = b, .size = 1};
    start(&d, do_write, sv[0]);
    E(&d, "from-a-thread");
    credentials("thread");
    pid_t child = fork();
    if (child == 0) _exit(write(sv[0], "x", 1) == 1 ? 0 : 1);
    STATUS(child, "child");
    credentials("child");
}

static long with_credentials(struct ucred *cred) {
    union control control = {0};
    struct iovec part = {"m", 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof *cred)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_CREDENTIALS, c->cmsg_len = CMSG_LEN(sizeof *cred);
    memcpy(CMSG_DATA(c), cred, sizeof *cred);
    return sendmsg(sv[0], &m, 0);
}

static int drops_and_sends(void *argument) {
    (void)argument;
    // Of this thread alone: the functions of libc change all of them.
    if (syscall(SYS_setresuid, 65534, 65534, 65534) != 0) return 98;
    struct ucred root = {getpid(), 0, 0};
    return with_credentials(&root) == -1 ? errno : 0;
}

CASE(explicit_credentials) {
    int on = 1;
    unix_pair(SOCK_STREAM, sv);
    setsockopt(sv[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    struct ucred own = {getpid(), getuid(), getgid()}, nobody = {0x3ffffff0, getuid(), getgid()};
    R(with_credentials(&own), "own");
    credentials("own");
    R(with_credentials(&nobody), "no-such-process");
    struct other other;
    begin(&other, drops_and_sends, NULL);
    R(finish(&other), "thread-without-rights");
    R(with_credentials(&own), "own-still");
}

CASE(peer_of_a_child) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path + 1, 60, "case-%d-peer", (int)getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    NEED(bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 5) == 0);
    pid_t child = fork();
    if (child == 0) {
        int own = socket(AF_UNIX, SOCK_STREAM, 0);
        _exit(connect(own, (struct sockaddr *)&a, sizeof a) == 0 && recv(own, b, 1, 0) == 0 ? 0 : 1);
    }
    int server = accept(fd, NULL, NULL);
    struct ucred who = {0};
    socklen_t length = sizeof who;
    R(getsockopt(server, SOL_SOCKET, SO_PEERCRED, &who, &length), "peercred");
    YES(who.pid == child, "pid");
    close(server);
    STATUS(child, "child");
}
