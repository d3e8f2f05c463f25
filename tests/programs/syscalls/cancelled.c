/* Threads that are cancelled in a call, and what becomes of the descriptor. */
#define PROGRAM "cancelled"
#include "call.h"

static int sv[2], fd, waiting_epoll, cleaned;
static char bytes[16];
static struct iovec part = {bytes, 16};
static struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
static struct epoll_event event;
static struct pollfd polled;
static fd_set set;

static void clean(void *argument) {
    (void)argument;
    cleaned++;
}

#define BODY(name, call)                   \
    static void *name(void *argument) {    \
        long result;                       \
        pthread_cleanup_push(clean, NULL); \
        result = (long)(call);             \
        pthread_cleanup_pop(0);            \
        (void)argument;                    \
        return (void *)result;             \
    }
BODY(in_read, read(fd, bytes, 16))
BODY(in_recv, recv(fd, bytes, 16, 0))
BODY(in_recvfrom, recvfrom(fd, bytes, 16, 0, NULL, NULL))
BODY(in_recvmsg, recvmsg(fd, &message, 0))
BODY(in_recvmmsg, recvmmsg(fd, &(struct mmsghdr){.msg_hdr = message}, 1, 0, NULL))
BODY(in_readv, readv(fd, &part, 1))
BODY(in_accept, accept(fd, NULL, NULL))
BODY(in_accept4, accept4(fd, NULL, NULL, 0))
BODY(in_poll, poll(&polled, 1, -1))
BODY(in_ppoll, ppoll(&polled, 1, NULL, NULL))
BODY(in_select, select(fd + 1, &set, NULL, NULL, NULL))
BODY(in_pselect, pselect(fd + 1, &set, NULL, NULL, NULL, NULL))
BODY(in_epoll_wait, epoll_wait(waiting_epoll, &event, 1, -1))
BODY(in_epoll_pwait, epoll_pwait(waiting_epoll, &event, 1, -1, NULL))
BODY(in_write, write(fd, bytes, 16))
BODY(in_send, send(fd, bytes, 16, 0))
BODY(in_sendmsg, sendmsg(fd, &message, 0))
BODY(in_writev, writev(fd, &part, 1))

struct way {
    const char *name;
    void *(*body)(void *);
    char waits_for;
};
static const struct way WAYS[] = {
    {"read", in_read, 'b'},         {"recv", in_recv, 'b'},       {"recvfrom", in_recvfrom, 'b'},
    {"recvmsg", in_recvmsg, 'b'},   {"recvmmsg", in_recvmmsg, 'b'}, {"readv", in_readv, 'b'},
    {"accept", in_accept, 'c'},     {"accept4", in_accept4, 'c'}, {"poll", in_poll, 'b'},
    {"ppoll", in_ppoll, 'b'},       {"select", in_select, 'b'},   {"pselect", in_pselect, 'b'},
    {"epoll_wait", in_epoll_wait, 'b'}, {"epoll_pwait", in_epoll_pwait, 'b'},
    {"write", in_write, 'r'},       {"send", in_send, 'r'},       {"sendmsg", in_sendmsg, 'r'},
    {"writev", in_writev, 'r'},
};

static void prepare(const struct way *way) {
    unix_pair(SOCK_STREAM, sv);
    fd = way->waits_for == 'c' ? listener() : sv[0];
    if (way->waits_for == 'r') filled(fd);
    polled = (struct pollfd){.fd = fd, .events = POLLIN};
    FD_ZERO(&set);
    FD_SET(fd, &set);
    waiting_epoll = epoll_create1(0);
    event.events = EPOLLIN;
    epoll_ctl(waiting_epoll, EPOLL_CTL_ADD, fd, &event);
    cleaned = 0;
}
static void away(void) {
    if (fd != sv[0]) close(fd);
    close(waiting_epoll), both_closed(sv);
}

CASE(while_waiting) {
    for EACH(way, WAYS) {
        prepare(way);
        pthread_t thread;
        void *result;
        NEED(pthread_create(&thread, NULL, way->body, NULL) == 0);
        pause_ms(10);
        R(pthread_cancel(thread), "%s.cancel", way->name);
        R(pthread_join(thread, &result), "%s.join", way->name);
        YES(result == PTHREAD_CANCELED, "%s.cancelled", way->name);
        R(cleaned, "%s.cleaned", way->name);
        // The next reader gets everything.
        char b[16];
        if (way->waits_for == 'b') {
            NEED(write(sv[1], "next", 4) == 4);
            R(recv(sv[0], b, 16, MSG_DONTWAIT), "%s.next", way->name);
        } else if (way->waits_for == 'c') {
            int client = connected_to(fd);
            YES(accept(fd, NULL, NULL) >= 0, "%s.next", way->name);
            close(client);
        } else {
            static char block[65536];
            while (recv(sv[1], block, sizeof block, MSG_DONTWAIT) > 0) {
            }
            R(write(sv[0], "next", 4), "%s.next", way->name);
        }
        away();
    }
}

static pthread_barrier_t ready;
static void *cancelled_before(void *argument) {
    const struct way *way = argument;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&ready);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    return way->body(NULL);
}

/* What could be done at once is not done any more. */
CASE(before_the_call) {
    pthread_barrier_init(&ready, NULL, 2);
    for EACH(way, WAYS) {
        if (way->waits_for != 'b') continue;
        prepare(way);
        NEED(write(sv[1], "kept", 4) == 4);
        pthread_t thread;
        void *result;
        NEED(pthread_create(&thread, NULL, cancelled_before, (void *)way) == 0);
        pthread_barrier_wait(&ready);
        pthread_cancel(thread);
        pthread_barrier_wait(&ready);
        pthread_join(thread, &result);
        YES(result == PTHREAD_CANCELED, "%s.cancelled", way->name);
        char b[16];
        R(recv(sv[0], b, 16, MSG_DONTWAIT), "%s.kept", way->name);
        away();
    }
}

static void *disabled(void *argument) {
    const struct way *way = argument;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    void *result = way->body(NULL);
    return result;
}

CASE(disabled_state) {
    for (int i = 0; i < 2; i++) {
        prepare(&WAYS[i]);
        pthread_t thread;
        void *result;
        NEED(pthread_create(&thread, NULL, disabled, (void *)&WAYS[i]) == 0);
        pause_ms(10);
        pthread_cancel(thread);
        pause_ms(20);
        NEED(write(sv[1], "abc", 3) == 3);
        pthread_join(thread, &result);
        R(result, "%s", WAYS[i].name);
        R(cleaned, "%s.cleaned", WAYS[i].name);
        away();
    }
}

static void *asynchronous(void *argument) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    return in_recv(argument);
}
CASE(asynchronous_type) {
    prepare(&WAYS[1]);
    pthread_t thread;
    void *result;
    NEED(pthread_create(&thread, NULL, asynchronous, NULL) == 0);
    pause_ms(10);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    YES(result == PTHREAD_CANCELED, "cancelled");
    NEED(write(sv[1], "next", 4) == 4);
    R(recv(sv[0], bytes, 16, MSG_DONTWAIT), "next");
}

/* A stack that is gone is not written to: other threads take it over. */
static void *on_stack(void *argument) {
    char local[4096];
    memset(local, (int)(long)argument, sizeof local);
    if (argument) {
        pause_ms(5);
        for (unsigned i = 0; i < sizeof local; i++) NEED(local[i] == (char)(long)argument);
        return NULL;
    }
    return (void *)recv(fd, local, sizeof local, 0);
}
CASE(stack_is_left_alone) {
    prepare(&WAYS[1]);
    for (int i = 0; i < 20; i++) {
        pthread_t thread, other;
        NEED(pthread_create(&thread, NULL, on_stack, NULL) == 0);
        pause_ms(2);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        NEED(pthread_create(&other, NULL, on_stack, (void *)77L) == 0);
        char block[64] = "";
        NEED(write(sv[1], block, 64) == 64);
        pthread_join(other, NULL);
        NEED(recv(sv[0], block, 64, MSG_DONTWAIT) == 64);
    }
    YES(true, "twenty-times");
}

static void *exits(void *argument) {
    pthread_join(*(pthread_t *)argument, NULL);
    char b[4];
    long n = recv(fd, b, 4, 0);
    _exit((int)n + 40);
}
static pthread_t main_thread;
CASE(main_thread_ends_first) {
    pid_t child = fork();
    if (child == 0) {
        prepare(&WAYS[1]);
        NEED(write(sv[1], "abc", 3) == 3);
        main_thread = pthread_self();
        pthread_t thread;
        NEED(pthread_create(&thread, NULL, exits, &main_thread) == 0);
        pthread_exit(NULL);
    }
    STATUS(child, "child");
}

static void *one_call(void *argument) {
    char b[4];
    return (void *)recv(*(int *)argument, b, 4, 0);
}
CASE(last_thread_ends) {
    pid_t child = fork();
    if (child == 0) {
        prepare(&WAYS[1]);
        NEED(write(sv[1], "abc", 3) == 3);
        pthread_t thread;
        NEED(pthread_create(&thread, NULL, one_call, &fd) == 0);
        pthread_exit(NULL);
    }
    STATUS(child, "child");
}

/* The first thread ends while another is in a call: the thread that executes that call is still
   needed. */
CASE(first_thread_ends) {
    prepare(&WAYS[1]);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        NEED(pthread_create(&thread, NULL, one_call, &fd) == 0);
        pause_ms(20);
        pthread_exit(NULL);
    }
    pause_ms(60);
    R(write(sv[1], "abc", 3), "write");
    STATUS(child, "child");
}

static char fifo[64];
BODY(in_open, open(fifo, O_RDONLY))

CASE(opening_a_fifo) {
    pthread_t thread;
    void *result;
    snprintf(fifo, sizeof fifo, "/tmp/case-fifo-%d", getpid());
    NEED(mkfifo(fifo, 0600) == 0);
    NEED(pthread_create(&thread, NULL, in_open, NULL) == 0);
    pause_ms(20);
    R(pthread_cancel(thread), "cancel");
    R(pthread_join(thread, &result), "join");
    YES(result == PTHREAD_CANCELED, "cancelled");
    R(cleaned, "cleaned");
    YES(open(fifo, O_RDWR) >= 0, "open");
    R(descriptors(), "descriptors");
    unlink(fifo);
}

static int file;
BODY(in_sendfile, sendfile(fd, file, NULL, 16))

/* Threads are not cancelled in it: it goes on when there is room. */
CASE(not_in_sendfile) {
    static char block[65536];
    pthread_t thread;
    void *result;
    unix_pair(SOCK_STREAM, sv);
    fd = sv[0], file = scratch();
    NEED(write(file, bytes, 16) == 16 && lseek(file, 0, SEEK_SET) == 0);
    long left = filled(fd) + 16;
    NEED(pthread_create(&thread, NULL, in_sendfile, NULL) == 0);
    pause_ms(20);
    R(pthread_cancel(thread), "cancel");
    while (left > 0 && arrives(sv[1])) left -= read(sv[1], block, sizeof block);
    R(pthread_join(thread, &result), "join");
    R(result, "result");
    R(left, "left");
}
