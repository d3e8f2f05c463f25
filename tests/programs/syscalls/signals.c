/* Signals that arrive in a call: whether it ends, what it returns, which thread handles them. */
#define PROGRAM "signals_in_calls"
#include "call.h"

static volatile int handled, handled_by, in_handler_result;
static void note(int signal) {
    (void)signal;
    handled++;
    handled_by = (int)syscall(SYS_gettid);
}

static int sv[2], waiting_epoll;
static char bytes[16];
static struct iovec part = {bytes, 16};
static struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
static struct mmsghdr messages = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
static struct epoll_event event;
static struct pollfd polled;
static fd_set set;
static const struct timespec long_time = {30, 0};
static struct timeval long_value;

DEED(by_readv, readv(d->fd, &part, 1))
DEED(by_recvmsg, recvmsg(d->fd, &message, 0))
DEED(by_recvfrom, recvfrom(d->fd, bytes, 16, 0, NULL, NULL))
DEED(by_recvmmsg, recvmmsg(d->fd, &messages, 1, 0, NULL))
DEED(by_waitall, recv(d->fd, bytes, 16, MSG_WAITALL))
DEED(by_accept4, accept4(d->fd, NULL, NULL, 0))
DEED(by_poll, poll(&polled, 1, 30000))
DEED(by_endless_poll, poll(&polled, 1, -1))
DEED(by_ppoll, ppoll(&polled, 1, &long_time, NULL))
DEED(by_select, select(d->fd + 1, &set, NULL, NULL, &long_value))
DEED(by_endless_select, select(d->fd + 1, &set, NULL, NULL, NULL))
DEED(by_pselect, pselect(d->fd + 1, &set, NULL, NULL, &long_time, NULL))
DEED(by_epoll_wait, epoll_wait(waiting_epoll, &event, 1, 30000))
DEED(by_epoll_pwait, epoll_pwait(waiting_epoll, &event, 1, -1, NULL))
DEED(by_epoll_pwait2, epoll_pwait2(waiting_epoll, &event, 1, &long_time, NULL))
DEED(by_writev, writev(d->fd, &part, 1))
DEED(by_sendmsg, sendmsg(d->fd, &message, 0))
DEED(by_sendmmsg, sendmmsg(d->fd, &messages, 1, 0))
DEED(by_sendto, sendto(d->fd, bytes, 16, 0, NULL, 0))

struct way {
    const char *name;
    void (*deed)(struct deed *);
    /* What it waits for: bytes, room, a connection; or an event, which bytes are, in a call that no
       signal restarts. */
    char waits_for;
};
static const struct way WAYS[] = {
    {"read", do_read, 'b'},
    {"recv", do_recv, 'b'},
    {"readv", by_readv, 'b'},
    {"recvmsg", by_recvmsg, 'b'},
    {"recvfrom", by_recvfrom, 'b'},
    {"recvmmsg", by_recvmmsg, 'b'},
    {"accept", do_accept, 'c'},
    {"accept4", by_accept4, 'c'},
    {"poll", by_poll, 'e'},
    {"poll-endless", by_endless_poll, 'e'},
    {"ppoll", by_ppoll, 'e'},
    {"select", by_select, 'e'},
    {"select-endless", by_endless_select, 'e'},
    {"pselect", by_pselect, 'e'},
    {"epoll_wait", by_epoll_wait, 'e'},
    {"epoll_pwait", by_epoll_pwait, 'e'},
    {"epoll_pwait2", by_epoll_pwait2, 'e'},
    {"write", do_write, 'r'},
    {"send", do_send, 'r'},
    {"writev", by_writev, 'r'},
    {"sendmsg", by_sendmsg, 'r'},
    {"sendmmsg", by_sendmmsg, 'r'},
    {"sendto", by_sendto, 'r'},
};

/* Two signals in each kind of waiting, then what it waits for. */
static void interrupt(int flags, bool with_limit) {
    handle(SIGUSR1, note, flags);
    for EACH(way, WAYS) {
        unix_pair(SOCK_STREAM, sv);
        int fd = way->waits_for == 'c' ? listener() : sv[0];
        struct timeval limit = {20, 0};
        if (with_limit) {
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        }
        if (way->waits_for == 'r') filled(fd);
        polled = (struct pollfd){.fd = fd, .events = POLLIN};
        FD_ZERO(&set); FD_SET(fd, &set);
        long_value = (struct timeval){30, 0};
        waiting_epoll = epoll_create1(0);
        event.events = EPOLLIN;
        epoll_ctl(waiting_epoll, EPOLL_CTL_ADD, fd, &event);
        struct deed d = {.size = 16};
        // The thread that executes a moved call gets a CPU before the call ends; one that goes on
        // is polled for a while only.
        bool restarts = flags & SA_RESTART && !with_limit && way->waits_for != 'e';
        int patience = restarts ? 20 : 3000;
        handled = 0;
        start(&d, way->deed, fd);
        for (int i = 1; i <= 2 && !is_done(&d.other); i++) {
            pthread_kill(d.other.thread, SIGUSR1);
            for (int wait = 0; wait < 1000 && handled < i; wait++) pause_ms(1);
            for (int wait = 0; wait < patience && !is_done(&d.other); wait++) pause_ms(1);
        }
        bool over = is_done(&d.other);
        static char block[1 << 16];
        if (!over && strchr("be", way->waits_for)) NEED(write(sv[1], "bytes", 5) == 5);
        if (!over && way->waits_for == 'c') connected_to(fd);
        while (!over && way->waits_for == 'r' && recv(sv[1], block, sizeof block, MSG_DONTWAIT) > 0) {
        }
        errno = UNTOUCHED;
        long result = ended(&d);
        SAID(way->waits_for == 'c' && result > 0 ? "accepted" : outcome(result), "%s", way->name);
        YES(handled_by == d.other.tid, "%s.handled-in-thread", way->name);
        R(handled, "%s.handled", way->name);
        if (fd != sv[0]) close(fd);
        close(waiting_epoll), both_closed(sv);
    }
}

CASE(ends_the_call) { interrupt(0, false); }
CASE(restarts_the_call) { interrupt(SA_RESTART, false); }
CASE(restarts_not_with_a_limit) { interrupt(SA_RESTART, true); }

CASE(ignored) {
    signal(SIGUSR1, SIG_IGN);
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    pthread_kill(d.other.thread, SIGUSR1);
    pause_ms(20);
    WAITS(&d, "waits");
    NEED(write(sv[1], "x", 1) == 1);
    E(&d, "recv");
}

CASE(all_of_a_waitall) {
    handle(SIGUSR1, note, 0);
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    NEED(write(sv[1], "part", 4) == 4);
    start(&d, by_waitall, sv[0]);
    pthread_kill(d.other.thread, SIGUSR1);
    E(&d, "part");
    R(handled, "handled");
}

static char big[4 << 20];
CASE(part_of_a_write) {
    handle(SIGUSR1, note, 0);
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {.bytes = big, .size = sizeof big};
    start(&d, do_write, sv[0]);
    WAITS(&d, "waits");
    pthread_kill(d.other.thread, SIGUSR1);
    long sent = ended(&d), got = 0, n;
    YES(sent > 0 && sent < (long)sizeof big, "part");
    while ((n = recv(sv[1], big, sizeof big, MSG_DONTWAIT)) > 0) got += n;
    YES(got == sent, "what-it-says");
}

CASE(part_of_a_write_restarts_not) {
    handle(SIGUSR1, note, SA_RESTART);
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {.bytes = big, .size = sizeof big};
    start(&d, do_send, sv[0]);
    pthread_kill(d.other.thread, SIGUSR1);
    long sent = ended(&d);
    YES(sent > 0 && sent < (long)sizeof big, "part");
}

/* ---- Half of a transfer is done when a handler comes ---- */

static struct iovec big_parts[3] = {{big, 1 << 20}, {big + (1 << 20), 0}, {big + (1 << 20), 3 << 20}};
static struct msghdr big_message = {.msg_iov = big_parts, .msg_iovlen = 3};
static struct iovec small_parts[2] = {{bytes, 6}, {bytes + 6, 10}};
static struct msghdr small_message = {.msg_iov = small_parts, .msg_iovlen = 2};
DEED(big_write, write(d->fd, big, sizeof big))
DEED(big_send, send(d->fd, big, sizeof big, 0))
DEED(big_writev, writev(d->fd, big_parts, 3))
DEED(big_sendmsg, sendmsg(d->fd, &big_message, 0))
DEED(waitall_recvfrom, recvfrom(d->fd, bytes, 16, MSG_WAITALL, NULL, NULL))
DEED(waitall_recvmsg, recvmsg(d->fd, &small_message, MSG_WAITALL))
static const struct way HALVES[] = {
    {"write", big_write, 'r'},          {"send", big_send, 'r'},
    {"writev", big_writev, 'r'},        {"sendmsg", big_sendmsg, 'r'},
    {"recv", by_waitall, 'b'},          {"recvfrom", waitall_recvfrom, 'b'},
    {"recvmsg", waitall_recvmsg, 'b'},
};

/* Whether there is no room again, or no byte left. */
static bool has_a_part(bool sends) {
    struct pollfd room = {.fd = sv[0], .events = POLLOUT};
    int left = 0;
    return sends ? poll(&room, 1, 0) == 0 : ioctl(sv[0], FIONREAD, &left) == 0 && left == 0;
}

/* Each call when a part of it is done; before anything is if `early`, and then with a part. */
static void interrupt_half(void (*pair)(int *), int flags, bool early) {
    handle(SIGUSR1, note, flags);
    for EACH(way, HALVES) {
        pair(sv);
        bool sends = way->waits_for == 'r';
        if (early && sends) filled(sv[0]);
        if (!early && !sends) NEED(write(sv[1], "part", 4) == 4);
        struct deed d = {0};
        handled = 0;
        start(&d, way->deed, sv[0]);
        WAITS(&d, "%s.waits", way->name);
        pause_ms(10);
        pthread_kill(d.other.thread, SIGUSR1);
        for (int wait = 0; wait < 1000 && !handled; wait++) pause_ms(1);
        for (int wait = 0; wait < 20 && !is_done(&d.other); wait++) pause_ms(1);
        if (early) {
            WAITS(&d, "%s.goes-on", way->name);
            static char block[1 << 16];
            /* Room for some, but not for all; or some of the bytes. */
            for (int i = 0; sends && i < 64 && recv(sv[1], block, sizeof block, MSG_DONTWAIT) > 0; i++) {
            }
            if (!sends) NEED(write(sv[1], "part", 4) == 4);
            for (int wait = 0; wait < 3000 && !has_a_part(sends); wait++) pause_ms(1);
            WAITS(&d, "%s.goes-on-with-a-part", way->name);
            pthread_kill(d.other.thread, SIGUSR1);
        }
        errno = UNTOUCHED;
        long result = ended(&d);
        if (sends) SAID(result > 0 && result < (long)sizeof big ? "part" : outcome(result), "%s", way->name);
        else SAID(outcome(result), "%s", way->name);
        R(handled, "%s.handled", way->name);
        both_closed(sv);
    }
}

static void unix_streams(int *pair) { unix_pair(SOCK_STREAM, pair); }
CASE(half_of_a_call) { interrupt_half(unix_streams, 0, false); }
CASE(half_of_a_call_restarts_not) { interrupt_half(unix_streams, SA_RESTART, false); }
CASE(half_of_a_call_after_a_restart) { interrupt_half(unix_streams, SA_RESTART, true); }
CASE(half_of_a_call_by_tcp) { interrupt_half(tcp_pair, SA_RESTART, false); }
CASE(half_of_a_call_of_a_thread_with_both_kinds) {
    handle(SIGUSR2, note, 0);
    interrupt_half(unix_streams, SA_RESTART, false);
}

static void use_socket(int signal) {
    (void)signal;
    handled++;
    in_handler_result = (int)write(sv[0], "from handler", 12);
}

CASE(handler_uses_the_socket) {
    char b[16];
    handle(SIGUSR1, use_socket, SA_RESTART);
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    pthread_kill(d.other.thread, SIGUSR1);
    R(recv(sv[1], b, 16, MSG_WAITALL & 0), "from-handler");
    for (int i = 0; i < 1000 && !in_handler_result; i++) pause_ms(1);
    R(in_handler_result, "write-in-handler");
    NEED(write(sv[1], "x", 1) == 1);
    E(&d, "recv");
}

static sigjmp_buf away;
static void jump(int signal) {
    (void)signal;
    siglongjmp(away, 1);
}
static void recv_until_jump(struct deed *d) {
    char local[64];
    if (sigsetjmp(away, 1) == 0)
        d->result = recv(d->fd, local, sizeof local, 0);
    else
        d->result = -77;
    errno = UNTOUCHED;
}

CASE(jump_out) {
    handle(SIGUSR1, jump, 0);
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, recv_until_jump, sv[0]);
    pthread_kill(d.other.thread, SIGUSR1);
    E(&d, "jumped");
    pause_ms(20);
    char b[8] = "";
    R(write(sv[1], "after", 5), "write");
    pause_ms(20);
    R(recv(sv[0], b, 8, MSG_DONTWAIT), "nothing-taken");
    TEXT(b, 5, "bytes");
}

CASE(alarm_ends_recv) {
    char b;
    handle(SIGALRM, note, 0);
    unix_pair(SOCK_STREAM, sv);
    struct itimerval t = {.it_value = {0, 30000}};
    setitimer(ITIMER_REAL, &t, NULL);
    R(recv(sv[0], &b, 1, 0), "recv");
    R(handled, "handled");
    YES(handled_by == getpid(), "main-thread");
}

CASE(alarms_again_and_again) {
    char b[8];
    handle(SIGALRM, note, SA_RESTART);
    unix_pair(SOCK_STREAM, sv);
    struct itimerval t = {.it_value = {0, 2000}, .it_interval = {0, 2000}}, none = {0};
    setitimer(ITIMER_REAL, &t, NULL);
    long right = 0;
    for (int i = 0; i < 50; i++) {
        struct deed d = {0};
        NEED(write(sv[1], "12345678", 8) == 8);
        right += recv(sv[0], b, 8, 0) == 8;
        usleep(1000);
        (void)d;
    }
    setitimer(ITIMER_REAL, &none, NULL);
    R(right, "right");
    YES(handled > 10, "handled");
}

DEED(by_masked_ppoll, ({
         sigset_t none;
         sigemptyset(&none);
         ppoll(&polled, 1, &long_time, &none);
     }))

CASE(mask_of_ppoll) {
    sigset_t one;
    sigemptyset(&one), sigaddset(&one, SIGUSR1);
    handle(SIGUSR1, note, 0);
    unix_pair(SOCK_STREAM, sv);
    polled = (struct pollfd){.fd = sv[0], .events = POLLIN};
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    raise(SIGUSR1);
    R(handled, "blocked");
    sigset_t none;
    sigemptyset(&none);
    R(ppoll(&polled, 1, &long_time, &none), "ppoll");
    R(handled, "handled");
    raise(SIGUSR1);
    FD_ZERO(&set); FD_SET(sv[0], &set);
    R(pselect(sv[0] + 1, &set, NULL, NULL, &long_time, &none), "pselect");
    R(handled, "handled-2");
    raise(SIGUSR1);
    waiting_epoll = epoll_create1(0);
    R(epoll_pwait(waiting_epoll, &event, 1, 20000, &none), "epoll_pwait");
    R(handled, "handled-3");
    raise(SIGUSR1);
    R(ppoll(&polled, 1, &(struct timespec){0, 0}, NULL), "no-mask");
    R(handled, "handled-4");
    struct deed d = {0};
    start(&d, by_masked_ppoll, sv[0]);
    pthread_kill(d.other.thread, SIGUSR1);
    E(&d, "in-thread");
}

static void urgent(int signal) {
    (void)signal;
    handled++;
}
CASE(urgent_data) {
    handle(SIGURG, urgent, 0);
    tcp_pair(sv);
    R(fcntl(sv[0], F_SETOWN, getpid()), "own");
    R(send(sv[1], "!", 1, MSG_OOB), "send");
    for (int i = 0; i < 1000 && !handled; i++) pause_ms(1);
    R(handled, "handled");
}

CASE(signal_driven) {
    handle(SIGIO, urgent, 0);
    unix_pair(SOCK_STREAM, sv);
    R(fcntl(sv[0], F_SETOWN, getpid()), "own");
    R(fcntl(sv[0], F_SETFL, O_ASYNC), "async");
    NEED(write(sv[1], "x", 1) == 1);
    for (int i = 0; i < 1000 && !handled; i++) pause_ms(1);
    YES(handled > 0, "handled");
}

CASE(stopped_and_continued) {
    unix_pair(SOCK_STREAM, sv);
    pid_t child = fork();
    if (child == 0) {
        char b[8];
        _exit(recv(sv[0], b, 8, 0) == 3 ? 7 : 8);
    }
    pause_ms(30);
    kill(child, SIGSTOP);
    pause_ms(20);
    kill(child, SIGCONT);
    pause_ms(20);
    NEED(write(sv[1], "abc", 3) == 3);
    STATUS(child, "child");
}

/* ---- SIGPIPE ---- */

static void broken(void) {
    unix_pair(SOCK_STREAM, sv);
    close(sv[1]);
}
DEED(by_nosignal, send(d->fd, "x", 1, MSG_NOSIGNAL))

static void to_broken(void (*deed)(struct deed *)) {
    struct deed d = {.fd = sv[0], .bytes = bytes, .size = 1};
    deed(&d);
}

CASE(pipe_kills) {
    static const struct way OUT[] = {{"write", do_write, 0},      {"send", do_send, 0},         {"writev", by_writev, 0},
                                     {"sendmsg", by_sendmsg, 0},  {"sendmmsg", by_sendmmsg, 0}, {"sendto", by_sendto, 0},
                                     {"nosignal", by_nosignal, 0}};
    for EACH(way, OUT) {
        pid_t child = fork();
        if (child == 0) {
            broken();
            to_broken(way->deed);
            _exit(errno == EPIPE ? 32 : 1);
        }
        STATUS(child, "%s", way->name);
    }
}

CASE(pipe_handled) {
    handle(SIGPIPE, note, 0);
    broken();
    R(write(sv[0], "x", 1), "write");
    R(handled, "handled");
    YES(handled_by == (int)syscall(SYS_gettid), "here");
    struct deed d = {.bytes = bytes, .size = 1};
    start(&d, do_send, sv[0]);
    E(&d, "in-thread");
    R(handled, "in-thread.handled");
    YES(handled_by == d.other.tid, "in-thread.there");
    R(send(sv[0], "x", 1, MSG_NOSIGNAL), "nosignal");
    R(handled, "nosignal.handled");
}

CASE(pipe_ignored) {
    signal(SIGPIPE, SIG_IGN);
    broken();
    R(write(sv[0], "x", 1), "write");
    R(writev(sv[0], &part, 1), "writev");
    tcp_pair(sv);
    shutdown(sv[0], SHUT_WR);
    R(write(sv[0], "x", 1), "after-shutdown");
}

CASE(pipe_blocked) {
    sigset_t one, pending;
    sigemptyset(&one), sigaddset(&one, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    broken();
    R(write(sv[0], "x", 1), "write");
    sigpending(&pending);
    R(sigismember(&pending, SIGPIPE), "pending");
    siginfo_t about;
    R(sigtimedwait(&one, &about, &(struct timespec){1, 0}) == SIGPIPE, "taken");
    R(send(sv[0], "x", 1, MSG_NOSIGNAL), "nosignal");
    sigpending(&pending);
    R(sigismember(&pending, SIGPIPE), "nosignal.pending");
}

CASE(pipe_while_full) {
    signal(SIGPIPE, SIG_IGN);
    unix_pair(SOCK_STREAM, sv);
    filled(sv[0]);
    struct deed d = {.bytes = bytes, .size = 1};
    start(&d, do_write, sv[0]);
    WAITS(&d, "waits");
    close(sv[1]);
    E(&d, "write");
}

/* A program that has closed its standard error may have a client there: no other thread writes to
   it. */
CASE(client_in_place_of_standard_error) {
    close(2);
    unix_pair(SOCK_STREAM, sv);
    R(sv[0], "number");
    R(signal(61, SIG_IGN) == SIG_DFL, "ignored");
    R(signal(61, note) == SIG_ERR, "handler");
    R(recv(sv[1], bytes, sizeof bytes, MSG_DONTWAIT), "recv");
}
