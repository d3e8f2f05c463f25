/* What a program calls that was compiled with -D_FORTIFY_SOURCE: sizes that only the running
   program knows. */
#define NAMED_(level) "fortified-" #level
#define NAMED(level) NAMED_(level)
#ifdef _FORTIFY_SOURCE
#define PROGRAM NAMED(_FORTIFY_SOURCE)
#else
#define PROGRAM NAMED(0)
#endif
#include "call.h"

static int sv[2];
static char buffer[32];
static volatile size_t size = 16;

CASE(reads) {
    unix_pair(SOCK_STREAM, sv);
    for (int i = 0; i < 3; i++) NEED(write(sv[0], "some bytes", 10) == 10);
    R(read(sv[1], buffer, size - 6), "read");
    R(recv(sv[1], buffer, size - 6, 0), "recv");
    R(recvfrom(sv[1], buffer, size - 6, 0, NULL, NULL), "recvfrom");
    TEXT(buffer, 10, "bytes");
    R(recv(sv[1], buffer, size, MSG_DONTWAIT), "nothing");
    struct deed d = {0};
    start(&d, do_read, sv[1]);
    WAITS(&d, "waits");
    NEED(write(sv[0], "abc", 3) == 3);
    E(&d, "read-later");
}

CASE(polls) {
    struct pollfd polled[4];
    volatile nfds_t count = 2;
    unix_pair(SOCK_STREAM, sv);
    for (int i = 0; i < 4; i++) polled[i] = (struct pollfd){.fd = sv[i & 1], .events = POLLIN};
    NEED(write(sv[0], "x", 1) == 1);
    R(poll(polled, count, 1000), "poll");
    R(ppoll(polled, count, &(struct timespec){1, 0}, NULL), "ppoll");
    fd_set set;
    FD_ZERO(&set);
    volatile int fd = sv[1];
    FD_SET(fd, &set);
    R(select(fd + 1, &set, NULL, NULL, NULL), "select");
    R(FD_ISSET(fd, &set) != 0, "isset");
}

CASE(of_files) {
    int fd = scratch();
    R(write(fd, "some bytes", 10), "write");
    R(pread(fd, buffer, size, 2), "pread");
    R(pread64(fd, buffer, size, 4), "pread64");
    R(lseek(fd, 0, SEEK_SET), "lseek");
    R(read(fd, buffer, size), "read");
    R(read(fd, buffer, size), "end");
}

#ifdef _FORTIFY_SOURCE
#define TOO_LONG(name, call)                                            \
    do {                                                                \
        pid_t victim_ = fork();                                          \
        if (victim_ == 0) {                                              \
            dup2(open("/dev/null", O_WRONLY), 2);                       \
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});             \
            if ((long)(call) == -77) _exit(1);                          \
            _exit(0);                                                   \
        }                                                               \
        STATUS(victim_, name);                                           \
    } while (0)

CASE(too_long) {
    char small[8];
    struct pollfd polled[2] = {{.fd = -1}, {.fd = -1}};
    volatile size_t more = 9;
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "ab", 2) == 2);
    TOO_LONG("read", read(sv[1], small, more));
    TOO_LONG("recv", recv(sv[1], small, more, 0));
    TOO_LONG("recvfrom", recvfrom(sv[1], small, more, 0, NULL, NULL));
    TOO_LONG("pread", pread(sv[1], small, more, 0));
    TOO_LONG("poll", poll(polled, more, 0));
    TOO_LONG("ppoll", ppoll(polled, more, NULL, NULL));
    volatile int high = FD_SETSIZE + 1;
    fd_set set;
    FD_ZERO(&set);
    TOO_LONG("fd_set", (FD_SET(high, &set), 0));
    R(recv(sv[1], small, 8, 0), "nothing-taken");
}
#endif
