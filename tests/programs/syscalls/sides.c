/* The two sides of a connection, each of which can end by itself; and names that need no file. */
#define PROGRAM "sides"
#include "call.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

static int sv[2];
static char b[4096];

CASE(half_closed) {
    tcp_pair(sv);
    NEED(write(sv[0], "question", 8) == 8);
    R(shutdown(sv[0], SHUT_WR), "shutdown");
    R(recv(sv[1], b, 64, MSG_WAITALL), "question");
    R(recv(sv[1], b, 64, 0), "its-end");
    R(send(sv[1], "answer", 6, 0), "answer");
    R(shutdown(sv[1], SHUT_WR), "shutdown-2");
    R(recv(sv[0], b, 64, MSG_WAITALL), "recv");
    R(recv(sv[0], b, 64, 0), "end");
}

CASE(seen_by_poll) {
    struct pollfd p = {.events = POLLIN | POLLOUT | POLLRDHUP};
    tcp_pair(sv);
    shutdown(sv[0], SHUT_WR);
    NEED(arrives(sv[1]));
    p.fd = sv[1];
    R(poll(&p, 1, 0), "half");
    R(p.revents, "half.events");
    shutdown(sv[1], SHUT_WR);
    NEED(arrives(sv[0]));
    p.fd = sv[0];
    R(poll(&p, 1, 0), "both");
    R(p.revents, "both.events");
}

CASE(end_of_reading) {
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "rest", 4) == 4);
    R(shutdown(sv[1], SHUT_RD), "shutdown");
    R(recv(sv[1], b, 64, 0), "what-was-there");
    R(recv(sv[1], b, 64, 0), "end");
    signal(SIGPIPE, SIG_IGN);
    R(send(sv[0], "x", 1, 0), "send");
    R(send(sv[1], "x", 1, 0), "other-direction");
    R(recv(sv[0], b, 64, 0), "other-direction.recv");
}

CASE(ended_twice) {
    tcp_pair(sv);
    R(shutdown(sv[0], SHUT_WR), "first");
    R(shutdown(sv[0], SHUT_WR), "second");
    R(shutdown(sv[0], SHUT_RD), "reading");
    R(recv(sv[0], b, 64, 0), "recv");
    R(recv(sv[1], b, 64, 0), "there");
}

CASE(peeked_end) {
    tcp_pair(sv);
    NEED(write(sv[0], "ab", 2) == 2 && shutdown(sv[0], SHUT_WR) == 0);
    R(recv(sv[1], b, 64, MSG_PEEK | MSG_WAITALL), "peek");
    R(recv(sv[1], b, 64, MSG_WAITALL), "recv");
    R(recv(sv[1], b, 64, MSG_PEEK), "end");
    R(recv(sv[1], b, 64, MSG_PEEK | MSG_DONTWAIT), "end-again");
}

CASE(no_bytes_asked_for) {
    tcp_pair(sv);
    R(recv(sv[1], b, 0, MSG_DONTWAIT), "nothing-there");
    NEED(write(sv[0], "ab", 2) == 2 && arrives(sv[1]));
    R(recv(sv[1], b, 0, 0), "bytes-there");
    R(read(sv[1], b, 0), "read");
    R(recv(sv[1], b, 64, 0), "still-there");
    unix_pair(SOCK_DGRAM, sv);
    NEED(write(sv[0], "ab", 2) == 2);
    R(recv(sv[1], b, 0, 0), "datagram");
    R(recv(sv[1], b, 64, MSG_DONTWAIT), "datagram-is-gone");
}

CASE(listener_goes) {
    int fd = listener(), client = connected_to(fd);
    NEED(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 2000) == 1);
    R(close(fd), "close");
    R(recv(client, b, 64, 0), "recv");
}

CASE(listener_is_shut_down) {
    int fd = listener();
    R(shutdown(fd, SHUT_RD), "shutdown");
    R(accept(fd, NULL, NULL), "accept");
    R(accept4(fd, NULL, NULL, SOCK_NONBLOCK), "accept4");
    R(listen(fd, 4), "listen");
    YES(connected_to(fd) >= 0, "connect");
    YES(accept(fd, NULL, NULL) >= 0, "accept-again");
}

CASE(in_order_of_arrival) {
    int fd = listener(), clients[4];
    bool in_order = true;
    for EACH(client, clients) *client = connected_to(fd);
    for EACH(client, clients) {
        struct sockaddr_in from = {0};
        socklen_t length = sizeof from;
        NEED(accept(fd, (struct sockaddr *)&from, &length) >= 0);
        in_order &= ntohs(from.sin_port) == port_of(*client);
    }
    YES(in_order, "accept");
}

CASE(what_accept_hands_down) {
    int fd = bound(SOCK_STREAM), one = 1, value = 0;
    socklen_t length = sizeof value;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    set_nonblocking(fd, true);
    NEED(listen(fd, 4) == 0);
    connected_to(fd);
    NEED(arrives(fd));
    int server = accept(fd, NULL, NULL);
    R(fcntl(server, F_GETFL) & O_NONBLOCK, "nonblocking");
    R(fcntl(server, F_GETFD), "cloexec");
    R(getsockopt(server, IPPROTO_TCP, TCP_NODELAY, &value, &length), "nodelay");
    R(value, "nodelay.value");
    struct deed d = {0};
    start(&d, do_recv, server);
    WAITS(&d, "recv.waits");
    shutdown(server, SHUT_RD);
    E(&d, "recv");
}

CASE(one_socket_with_itself) {
    int fd = bound(SOCK_STREAM);
    struct sockaddr_in a = loopback(port_of(fd));
    R(connect(fd, (struct sockaddr *)&a, sizeof a), "connect");
    R(send(fd, "echo", 4, 0), "send");
    R(recv(fd, b, 64, 0), "recv");
    R(shutdown(fd, SHUT_WR), "shutdown");
    R(recv(fd, b, 64, 0), "end");
}

CASE(datagrams_shut_down) {
    udp_pair(sv);
    struct deed d = {0};
    start(&d, do_recv, sv[1]);
    WAITS(&d, "waits");
    R(shutdown(sv[1], SHUT_RD), "shutdown");
    E(&d, "recv");
    R(recv(sv[1], b, 64, 0), "recv-again");
    signal(SIGPIPE, SIG_IGN);
    R(shutdown(sv[0], SHUT_WR), "writing");
    R(send(sv[0], "x", 1, 0), "send");
}

/* Whether a connection that ended here comes to know that the other side has heard of it. */
static bool heard_of_the_end(int fd) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    for (int tries = 0; tries < 2000 && info.tcpi_state != TCP_FIN_WAIT2; tries++, pause_ms(1))
        NEED(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0);
    return info.tcpi_state == TCP_FIN_WAIT2;
}

CASE(bound_again_at_once) {
    int fd = listener(), port = port_of(fd), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int client = connected_to(fd), server = accept(fd, NULL, NULL);
    // This side ends first: the connection stays for a minute. Were the answer to its end still on
    // another CPU's way when the client closes, it would come back to a connection that is only
    // remembered, be answered by a reset, and end that.
    shutdown(server, SHUT_WR);
    NEED(heard_of_the_end(server));
    close(server), close(fd);
    R(recv(client, b, 64, 0), "end");
    close(client);
    int next = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = loopback(port);
    R(bind(next, (struct sockaddr *)&a, sizeof a), "bind");
    setsockopt(next, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    R(bind(next, (struct sockaddr *)&a, sizeof a), "reuseaddr");
    R(listen(next, 4), "listen");
}

/* A name of this process's own that no file has. */
static socklen_t abstract(struct sockaddr_un *a, const char *name) {
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "case-%d-%s", (int)getpid(), name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

CASE(abstract_name) {
    struct sockaddr_un a, got;
    socklen_t length = abstract(&a, "s"), size = sizeof got;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    R(connect(client, (struct sockaddr *)&a, length), "nobody");
    R(bind(fd, (struct sockaddr *)&a, length), "bind");
    R(listen(fd, 4), "listen");
    R(connect(client, (struct sockaddr *)&a, length), "connect");
    R(getpeername(client, (struct sockaddr *)&got, &size), "peer");
    YES(size == length && memcmp(&a, &got, length) == 0, "peer.same");
    close(fd);
    R(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&a, length), "gone");
}

CASE(name_by_the_kernel) {
    struct sockaddr_un got = {.sun_family = AF_UNIX};
    socklen_t size = sizeof got;
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    R(bind(fd, (struct sockaddr *)&got, sizeof got.sun_family), "bind");
    R(getsockname(fd, (struct sockaddr *)&got, &size), "name");
    R(size, "length");
    int other = socket(AF_UNIX, SOCK_DGRAM, 0);
    R(sendto(other, "abc", 3, 0, (struct sockaddr *)&got, size), "sendto");
    R(recv(fd, b, 64, 0), "recv");
}

CASE(names_of_senders) {
    struct sockaddr_un to, from, got;
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0), other = socket(AF_UNIX, SOCK_DGRAM, 0);
    socklen_t there = abstract(&to, "to"), here = abstract(&from, "from"), size = sizeof got;
    NEED(bind(fd, (struct sockaddr *)&to, there) == 0 && bind(other, (struct sockaddr *)&from, here) == 0);
    R(sendto(other, "abc", 3, 0, (struct sockaddr *)&to, there), "sendto");
    R(recvfrom(fd, b, 64, 0, (struct sockaddr *)&got, &size), "recvfrom");
    YES(size == here && memcmp(&from, &got, here) == 0, "from");
    size = 4;
    NEED(sendto(other, "abc", 3, 0, (struct sockaddr *)&to, there) == 3);
    R(recvfrom(fd, b, 64, 0, (struct sockaddr *)&got, &size), "short");
    YES(size == here, "short.real-length");
}

CASE(kernel_at_the_other_end) {
    struct {
        struct nlmsghdr header;
        struct rtgenmsg message;
    } request = {
        {.nlmsg_len = sizeof request, .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = 7},
        {.rtgen_family = AF_UNSPEC},
    };
    static char answer[65536];
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    R(recv(fd, b, 64, MSG_DONTWAIT), "nothing");
    R(send(fd, &request, sizeof request, 0), "send");
    SIGN(recv(fd, answer, sizeof answer, 0), "recv");
    R(((struct nlmsghdr *)answer)->nlmsg_seq, "sequence");
    R(((struct nlmsghdr *)answer)->nlmsg_type == RTM_NEWLINK, "type");
    R(accept(fd, NULL, NULL), "accept");
    R(listen(fd, 1), "listen");
}

CASE(two_listeners) {
    int fd[2] = {listener(), listener()}, ep = epoll_create1(0);
    for (int i = 0; i < 2; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        NEED(epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &e) == 0);
    }
    struct epoll_event e[4] = {0};
    R(epoll_wait(ep, e, 4, 0), "none");
    connected_to(fd[1]);
    R(epoll_wait(ep, e, 4, 2000), "one");
    R(e[0].data.u32, "one.which");
    connected_to(fd[0]);
    NEED(arrives(fd[0]));
    R(epoll_wait(ep, e, 4, 2000), "both");
    YES(accept(fd[1], NULL, NULL) >= 0, "accept");
    R(epoll_wait(ep, e, 4, 0), "rest");
    R(e[0].data.u32, "rest.which");
}
