/* Every function on every wrong kind of descriptor. */
#define PROGRAM "wrong"
#include "call.h"
#include <sys/eventfd.h>

static char b[8];
static struct iovec part = {b, 4};
static struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
static struct mmsghdr messages = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
static struct sockaddr_in address = {.sin_family = AF_INET};
static socklen_t length;
static int value;

#define TRIED(name, call) \
    static long name(int fd) { return (long)(call); }
TRIED(t_accept, accept(fd, NULL, NULL))
TRIED(t_accept4, accept4(fd, NULL, NULL, SOCK_CLOEXEC))
TRIED(t_bind, bind(fd, (struct sockaddr *)&address, sizeof address))
TRIED(t_connect, connect(fd, (struct sockaddr *)&address, sizeof address))
TRIED(t_listen, listen(fd, 1))
TRIED(t_shutdown, shutdown(fd, SHUT_WR))
TRIED(t_getsockname, (length = sizeof address, getsockname(fd, (struct sockaddr *)&address, &length)))
TRIED(t_getpeername, (length = sizeof address, getpeername(fd, (struct sockaddr *)&address, &length)))
TRIED(t_getsockopt, (length = sizeof value, getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &length)))
TRIED(t_setsockopt, setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value))
TRIED(t_send, send(fd, b, 4, MSG_NOSIGNAL))
TRIED(t_sendto, sendto(fd, b, 4, MSG_NOSIGNAL, NULL, 0))
TRIED(t_sendmsg, sendmsg(fd, &message, MSG_NOSIGNAL))
TRIED(t_sendmmsg, sendmmsg(fd, &messages, 1, MSG_NOSIGNAL))
TRIED(t_recv, recv(fd, b, 4, MSG_DONTWAIT))
TRIED(t_recvfrom, recvfrom(fd, b, 4, MSG_DONTWAIT, NULL, NULL))
TRIED(t_recvmsg, recvmsg(fd, &message, MSG_DONTWAIT))
TRIED(t_recvmmsg, recvmmsg(fd, &messages, 1, MSG_DONTWAIT, NULL))
TRIED(t_read, read(fd, b, 4))
TRIED(t_write, write(fd, b, 4))
TRIED(t_readv, readv(fd, &part, 1))
TRIED(t_writev, writev(fd, &part, 1))
TRIED(t_fsync, fsync(fd))
TRIED(t_fdatasync, fdatasync(fd))
TRIED(t_pread, pread(fd, b, 4, 0))
TRIED(t_pwrite, pwrite(fd, b, 4, 0))
TRIED(t_fcntl, fcntl(fd, F_GETFL))
TRIED(t_dup2, dup2(fd, fd) == fd ? 0 : -1)
TRIED(t_epoll_wait, epoll_wait(fd, (struct epoll_event[]){{0}}, 1, 0))
TRIED(t_sendfile, sendfile(fd, fd, NULL, 4))
TRIED(t_splice, splice(fd, NULL, fd, NULL, 4, SPLICE_F_NONBLOCK))

static const struct {
    const char *name;
    long (*call)(int);
} CALLS[] = {
    {"accept", t_accept},           {"accept4", t_accept4},         {"bind", t_bind},           {"connect", t_connect},
    {"listen", t_listen},           {"shutdown", t_shutdown},       {"getsockname", t_getsockname}, {"getpeername", t_getpeername},
    {"getsockopt", t_getsockopt},   {"setsockopt", t_setsockopt},   {"send", t_send},           {"sendto", t_sendto},
    {"sendmsg", t_sendmsg},         {"sendmmsg", t_sendmmsg},       {"recv", t_recv},           {"recvfrom", t_recvfrom},
    {"recvmsg", t_recvmsg},         {"recvmmsg", t_recvmmsg},       {"read", t_read},           {"write", t_write},
    {"readv", t_readv},             {"writev", t_writev},           {"fsync", t_fsync},         {"fdatasync", t_fdatasync},
    {"pread", t_pread},             {"pwrite", t_pwrite},           {"fcntl", t_fcntl},         {"dup2", t_dup2},
    {"epoll_wait", t_epoll_wait},   {"sendfile", t_sendfile},       {"splice", t_splice},
};

static void all_on(int fd) {
    for EACH(one, CALLS) R(one->call(fd), "%s", one->name);
}

CASE(negative) { all_on(-1); }
CASE(closed) { all_on(400); }
CASE(far_away) { all_on(1000000); }
CASE(file_to_read) { all_on(open("/etc/hostname", O_RDONLY)); }
CASE(directory) { all_on(open("/", O_RDONLY)); }
CASE(path_only) { all_on(open("/etc/hostname", O_PATH)); }
CASE(event) { all_on(eventfd(1, EFD_NONBLOCK)); }
CASE(epoll) { all_on(epoll_create1(0)); }

CASE(closed_socket) {
    int sv[2];
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && write(sv[1], "x", 1) == 1 && read(sv[0], b, 1) == 1);
    close(sv[0]);
    all_on(sv[0]);
}

CASE(number_of_a_socket_now_a_pipe) {
    int sv[2], p[2];
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && write(sv[1], "x", 1) == 1 && read(sv[0], b, 1) == 1);
    syscall(SYS_close, sv[0]);
    NEED(pipe2(p, O_NONBLOCK) == 0);
    NEED(p[0] == sv[0]);
    all_on(p[0]);
}
