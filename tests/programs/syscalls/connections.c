/* Connections: made, accepted, refused, reset. */
#define PROGRAM "connections"
#include "call.h"

static struct sockaddr_un unix_name(const char *name) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "case-%d-%s", (int)getpid(), name);
    return a;
}

CASE(tcp) {
    int fd = listener(), port = port_of(fd), client = connected_to(fd);
    struct sockaddr_in a = {0};
    socklen_t length = sizeof a;
    int server = accept(fd, (struct sockaddr *)&a, &length);
    YES(server >= 0, "accept");
    R(length, "length");
    YES(ntohs(a.sin_port) == port_of(client), "port");
    length = sizeof a;
    R(getpeername(client, (struct sockaddr *)&a, &length), "peer");
    YES(ntohs(a.sin_port) == port, "peer.port");
    R(getsockname(server, (struct sockaddr *)&a, &length), "name");
    YES(ntohs(a.sin_port) == port, "name.port");
    length = 4;
    R(getsockname(server, (struct sockaddr *)&a, &length), "short");
    R(length, "short.length");
    R(connect(client, (struct sockaddr *)&a, sizeof a), "connect-again");
    R(listen(client, 5), "listen-connected");
    R(bind(client, (struct sockaddr *)&a, sizeof a), "bind-connected");
}

CASE(unix_stream) {
    struct sockaddr_un a = unix_name("s"), b = {0};
    socklen_t length = sizeof b;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    R(connect(client, (struct sockaddr *)&a, sizeof a), "nobody");
    R(bind(fd, (struct sockaddr *)&a, sizeof a), "bind");
    R(connect(client, (struct sockaddr *)&a, sizeof a), "not-listening");
    R(listen(fd, 1), "listen");
    R(connect(client, (struct sockaddr *)&a, sizeof a), "connect");
    int server = accept(fd, (struct sockaddr *)&b, &length);
    YES(server >= 0, "accept");
    R(length, "unnamed");
    char text[8];
    R(write(client, "abc", 3), "write");
    R(read(server, text, 8), "read");
    struct ucred who = {0};
    length = sizeof who;
    R(getsockopt(server, SOL_SOCKET, SO_PEERCRED, &who, &length), "peer");
    YES(who.pid == getpid(), "peer.pid");
    int second = socket(AF_UNIX, SOCK_STREAM, 0);
    R(bind(second, (struct sockaddr *)&a, sizeof a), "in-use");
}

CASE(wrong_use) {
    int stream = socket(AF_INET, SOCK_STREAM, 0), dgram = socket(AF_INET, SOCK_DGRAM, 0), sv[2];
    struct sockaddr_in a = loopback(9);
    socklen_t length = sizeof a;
    char b[4];
    R(socket(99, SOCK_STREAM, 0), "domain");
    R(socket(AF_INET, 99, 0), "type");
    R(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP), "protocol");
    R(socketpair(AF_INET, SOCK_STREAM, 0, sv), "pair");
    R(socketpair(AF_UNIX, 99, 0, sv), "pair-type");
    R(accept(stream, NULL, NULL), "accept-idle");
    R(accept(dgram, NULL, NULL), "accept-dgram");
    R(listen(dgram, 1), "listen-dgram");
    R(getpeername(stream, (struct sockaddr *)&a, &length), "peer");
    R(shutdown(stream, SHUT_RDWR), "shutdown");
    R(shutdown(stream, 9), "shutdown-how");
    R(recv(stream, b, 4, 0), "recv");
    signal(SIGPIPE, SIG_IGN);
    R(send(stream, b, 4, 0), "send");
    R(send(dgram, b, 4, 0), "send-dgram");
    R(bind(stream, (struct sockaddr *)&a, 3), "bind-short");
    R(connect(stream, (struct sockaddr *)&a, 3), "connect-short");
    a.sin_family = AF_UNIX;
    R(bind(stream, (struct sockaddr *)&a, sizeof a), "bind-family");
    R(connect(stream, (struct sockaddr *)&a, sizeof a), "connect-family");
    a = loopback(0);
    R(bind(stream, (struct sockaddr *)&a, sizeof a), "bind");
    R(bind(stream, (struct sockaddr *)&a, sizeof a), "bind-again");
    R(bind(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&(struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x08080808)}, sizeof a), "bind-elsewhere");
}

CASE(in_use) {
    int fd = listener(), second = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in a = loopback(port_of(fd));
    R(bind(second, (struct sockaddr *)&a, sizeof a), "bind");
    int third = socket(AF_INET, SOCK_STREAM, 0), fourth = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(third, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    setsockopt(fourth, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    a = loopback(0);
    R(bind(third, (struct sockaddr *)&a, sizeof a), "reuseport-1");
    a = loopback(port_of(third));
    R(bind(fourth, (struct sockaddr *)&a, sizeof a), "reuseport-2");
}

CASE(refused) {
    int fd = bound(SOCK_STREAM), client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = loopback(port_of(fd));
    R(connect(client, (struct sockaddr *)&a, sizeof a), "connect");
    R(listen(fd, 4), "listen");
    R(connect(client, (struct sockaddr *)&a, sizeof a), "then");
}

CASE(reset) {
    int sv[2];
    char b[4];
    tcp_pair(sv);
    struct linger l = {1, 0};
    R(setsockopt(sv[0], SOL_SOCKET, SO_LINGER, &l, sizeof l), "linger");
    R(close(sv[0]), "close");
    signal(SIGPIPE, SIG_IGN);
    NEED(poll(&(struct pollfd){.fd = sv[1], .events = POLLIN}, 1, 2000) == 1);
    R(recv(sv[1], b, 4, 0), "recv");
    R(recv(sv[1], b, 4, 0), "recv-again");
    R(send(sv[1], b, 4, 0), "send");
}

CASE(reset_of_a_waiting_call) {
    int sv[2];
    tcp_pair(sv);
    struct deed d = {0};
    start(&d, do_recv, sv[1]);
    struct linger l = {1, 0};
    setsockopt(sv[0], SOL_SOCKET, SO_LINGER, &l, sizeof l);
    close(sv[0]);
    E(&d, "recv");
}

CASE(unread_bytes_reset) {
    int sv[2];
    char b[4];
    tcp_pair(sv);
    NEED(write(sv[0], "unread", 6) == 6 && arrives(sv[1]));
    close(sv[1]);
    NEED(poll(&(struct pollfd){.fd = sv[0], .events = POLLIN}, 1, 2000) == 1);
    R(recv(sv[0], b, 4, 0), "recv");
}

CASE(shutdown_wakes) {
    int sv[2], fd = listener();
    struct deed d = {0};
    start(&d, do_accept, fd);
    WAITS(&d, "accept.waits");
    R(shutdown(fd, SHUT_RDWR), "accept.shutdown");
    E(&d, "accept");
    tcp_pair(sv);
    d = (struct deed){0};
    start(&d, do_recv, sv[0]);
    R(shutdown(sv[0], SHUT_RD), "recv.shutdown");
    E(&d, "recv");
    unix_pair(SOCK_STREAM, sv);
    d = (struct deed){0};
    start(&d, do_recv, sv[0]);
    R(shutdown(sv[0], SHUT_RDWR), "unix.shutdown");
    E(&d, "unix.recv");
    signal(SIGPIPE, SIG_IGN);
    unix_pair(SOCK_STREAM, sv);
    filled(sv[0]);
    d = (struct deed){0};
    start(&d, do_send, sv[0]);
    R(shutdown(sv[0], SHUT_WR), "send.shutdown");
    E(&d, "send");
}

CASE(four_acceptors) {
    int fd = listener();
    struct deed d[4] = {0};
    for (int i = 0; i < 4; i++) start(&d[i], do_accept, fd);
    for (int i = 0; i < 4; i++) connected_to(fd);
    for (int i = 0; i < 4; i++) YES(ended(&d[i]) >= 0, "%d", i);
    bool distinct = true;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) distinct &= d[i].result != d[j].result;
    YES(distinct, "distinct");
}

CASE(acceptors_in_children) {
    int fd = listener();
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        if ((children[i] = fork()) == 0) {
            char b[8] = "";
            int server = accept(fd, NULL, NULL);
            _exit(server >= 0 && read(server, b, 8) == 5 && write(server, b, 5) == 5 ? 5 : 1);
        }
    }
    for (int i = 0; i < 3; i++) {
        char b[8] = "";
        int client = connected_to(fd);
        R(write(client, "hello", 5), "%d.write", i);
        R(recv(client, b, 8, MSG_WAITALL), "%d.read", i);
        close(client);
    }
    for (int i = 0; i < 3; i++) STATUS(children[i], "%d.child", i);
}

CASE(waiting_connect) {
    struct sockaddr_un a = unix_name("w");
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), clients[3];
    NEED(bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 0) == 0);
    for (int i = 0; i < 3; i++) clients[i] = socket(AF_UNIX, SOCK_STREAM, 0);
    R(connect(clients[0], (struct sockaddr *)&a, sizeof a), "first");
    set_nonblocking(clients[1], true);
    R(connect(clients[1], (struct sockaddr *)&a, sizeof a), "queue-full");
    struct timeval t = {0, 30000};
    setsockopt(clients[2], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    R(connect(clients[2], (struct sockaddr *)&a, sizeof a), "limit");
    YES(accept(fd, NULL, NULL) >= 0, "accept");
    R(connect(clients[2], (struct sockaddr *)&a, sizeof a), "room");
}

CASE(hundreds_in_a_row) {
    int fd = listener();
    long right = 0;
    for (int i = 0; i < 300; i++) {
        char b[4];
        int client = connected_to(fd), server = accept(fd, NULL, NULL);
        right += write(client, "abc", 3) == 3 && read(server, b, 4) == 3 && close(client) == 0 && read(server, b, 4) == 0;
        close(server);
    }
    R(right, "right");
}

/* A socket that is connected by what it first sends, and waits for that. */
static int deferred(int port) {
    int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in a = loopback(port);
    NEED(s >= 0 && setsockopt(s, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof one) == 0);
    NEED(setsockopt(s, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &one, sizeof one) == 0);
    NEED(connect(s, (struct sockaddr *)&a, sizeof a) == 0);
    return s;
}

CASE(connected_by_a_send) {
    char b[8];
    int listening = listener(), port = port_of(listening), s = deferred(port);
    R(send(s, "abc", 3, 0), "send");
    int server = accept(listening, NULL, NULL);
    R(recv(server, b, 8, 0), "recv");
    close(listening);
    s = deferred(port);
    R(write(s, "abc", 3), "refused");
}
