/* Many calls at a time on one descriptor, and many descriptors at a time. */
#define PROGRAM "duplex"
#include "call.h"

CASE(recv_and_send) {
    int sv[2];
    char b[8];
    tcp_pair(sv);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    WAITS(&d, "recv-waits");
    R(send(sv[0], "ping", 4, 0), "send-beside");
    R(recv(sv[1], b, 8, 0), "arrives");
    R(send(sv[1], "pong", 4, 0), "answer");
    E(&d, "recv");
    TEXT(d.own, 4, "bytes");
}

CASE(send_and_recv) {
    int sv[2];
    char b[8];
    unix_pair(SOCK_STREAM, sv);
    filled(sv[0]);
    struct deed d = {0};
    start(&d, do_send, sv[0]);
    WAITS(&d, "send-waits");
    R(write(sv[1], "in", 2), "write");
    R(recv(sv[0], b, 8, 0), "recv-beside");
    R(shutdown(sv[0], SHUT_RD), "shutdown-beside");
    int size;
    socklen_t length = sizeof size;
    R(getsockopt(sv[0], SOL_SOCKET, SO_TYPE, &size, &length), "getsockopt-beside");
    static char block[65536];
    struct pollfd p = {.fd = sv[1], .events = POLLIN};
    while (!is_done(&d.other) && poll(&p, 1, 1000) == 1) NEED(read(sv[1], block, sizeof block) > 0);
    E(&d, "send");
}

CASE(eight_readers) {
    int sv[2];
    struct deed readers[8] = {0};
    tcp_pair(sv);
    for (int i = 0; i < 8; i++) start(&readers[i], do_recv, sv[0]), readers[i].size = 1;
    for (int i = 0; i < 8; i++) WAITS(&readers[i], "%d.waits", i);
    shutdown(sv[1], SHUT_WR);
    for (int i = 0; i < 8; i++) E(&readers[i], "%d.end", i);
}

CASE(eight_readers_of_bytes) {
    int sv[2];
    struct deed readers[8] = {0};
    bool seen[8] = {0};
    unix_pair(SOCK_DGRAM, sv);
    for (int i = 0; i < 8; i++) start(&readers[i], do_recv, sv[0]);
    for (char c = 0; c < 8; c++) NEED(write(sv[1], &c, 1) == 1);
    for (int i = 0; i < 8; i++) {
        E(&readers[i], "%d", i);
        seen[readers[i].own[0] & 7] = true;
    }
    for (int i = 0; i < 8; i++) YES(seen[i], "byte-%d", i);
}

static int ends[2];
static long echoed;
static void echo(long index) {
    char b[64];
    for (int i = 0; i < 500; i++) {
        if (index == 0) {
            snprintf(b, sizeof b, "round %d", i);
            NEED(send(ends[0], b, 64, 0) == 64 && recv(ends[0], b, 64, MSG_WAITALL) == 64);
            echoed += atoi(b + 6) == i;
        } else {
            NEED(recv(ends[1], b, 64, MSG_WAITALL) == 64 && send(ends[1], b, 64, 0) == 64);
        }
    }
}

CASE(ping_pong) {
    tcp_pair(ends);
    crew(2, echo);
    R(echoed, "tcp");
    echoed = 0;
    unix_pair(SOCK_STREAM, ends);
    crew(2, echo);
    R(echoed, "unix");
}

/* Both ends send and receive at a time: threads 0 and 1 send, 2 and 3 receive. */
enum { BOTH_WAYS = 2 << 20 };
static uint32_t sums[4];
static void both_ways(long index) {
    static char blocks[4][40000];
    char *block = blocks[index];
    uint32_t state = (uint32_t)(index & 1) + 7, sum = 0;
    for (long done = 0, n; done < BOTH_WAYS; done += n) {
        long size = BOTH_WAYS - done < 40000 ? BOTH_WAYS - done : 40000;
        if (index < 2)
            for (long i = 0; i < size; i++) block[i] = (char)((state = state * 1664525 + 1013904223) >> 24);
        if (index < 2) {
            for (long at = 0, m; at < size; at += m) NEED((m = write(ends[index], block + at, (size_t)(size - at))) > 0);
            n = size;
        } else {
            NEED((n = read(ends[1 - (index - 2)], block, (size_t)size)) > 0);
        }
        for (long i = 0; i < n; i++) sum = (sum ^ (unsigned char)block[i]) * 16777619u;
    }
    sums[index] = sum;
}

CASE(both_directions) {
    tcp_pair(ends);
    crew(4, both_ways);
    YES(sums[0] == sums[2], "there");
    YES(sums[1] == sums[3], "back");
}

enum { CROWD = 48 };
static int crowd[CROWD][2];
static long served;
static void wait_in_crowd(long index) {
    char b = 0;
    if (read(crowd[index][0], &b, 1) == 1 && b == (char)index) __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
}
static int serve_crowd(void *argument) {
    (void)argument;
    pause_ms(30);
    for (int i = CROWD; i-- > 0;) {
        char b = (char)i;
        NEED(write(crowd[i][1], &b, 1) == 1);
    }
    return 0;
}

CASE(many_waiting_sockets) {
    for (int i = 0; i < CROWD; i++) unix_pair(SOCK_STREAM, crowd[i]);
    struct other other;
    begin(&other, serve_crowd, NULL);
    crew(CROWD, wait_in_crowd);
    finish(&other);
    R(served, "served");
}

/* Lines of eight writers arrive whole: each is one call. */
static void write_lines(long index) {
    char line[32];
    memset(line, 'a' + (int)index, sizeof line);
    for (int i = 0; i < 100; i++) NEED(send(ends[0], line, sizeof line, 0) == sizeof line);
}
static int check_lines(void *argument) {
    char line[32];
    for (int i = 0; i < 800; i++) {
        if (recv(ends[1], line, sizeof line, MSG_WAITALL) != sizeof line) return -1;
        for (unsigned at = 1; at < sizeof line; at++) *(int *)argument += line[at] != line[0];
    }
    return 0;
}

CASE(eight_writers) {
    int torn = 0;
    unix_pair(SOCK_STREAM, ends);
    struct other other;
    begin(&other, check_lines, &torn);
    crew(8, write_lines);
    R(finish(&other), "received");
    R(torn, "torn");
}

CASE(one_after_the_other) {
    long right = 0;
    for (int i = 0; i < 300; i++) {
        int sv[2];
        char b = 0;
        unix_pair(i & 1 ? SOCK_STREAM : SOCK_DGRAM, sv);
        right += write(sv[0], &(char){(char)i}, 1) == 1 && read(sv[1], &b, 1) == 1 && b == (char)i;
        both_closed(sv);
    }
    R(right, "pairs");
}

CASE(threads_come_and_go) {
    long right = 0;
    unix_pair(SOCK_STREAM, ends);
    for (int i = 0; i < 100; i++) {
        struct deed d = {0};
        start(&d, do_recv, ends[0]);
        NEED(write(ends[1], "abc", 3) == 3);
        right += ended(&d) == 3;
    }
    R(right, "threads");
}
