/* Many connections that are open and idle: COUNT. Prints how many threads there are and what memory
 * a connection takes.
 *
 * Each has been used once, so that a library that keeps a table of connections has it there. The
 * clients' ends are made by system calls that no library sees, one after the other: many at once
 * would overflow the queue of connections, and each that does is tried again by the kernel after a
 * second, three, seven. */
#include "../case.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Of this process's memory, what is its own, in KiB. */
static long own_kib(void) {
    char text[4096];
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    NEED(file >= 0);
    long n = read(file, text, sizeof text - 1);
    NEED(n > 0);
    close(file);
    text[n] = 0;
    char *line = strstr(text, "\nAnonymous:");
    NEED(line);
    return atol(line + strlen("\nAnonymous:"));
}

static int threads(void) {
    int count = 0;
    DIR *directory = opendir("/proc/self/task");
    NEED(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count - 2;
}

static int listening, port;

/* The other ends, in a process that makes system calls which no library sees. */
static void clients(int count) {
    char b[8];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < count; i++) {
        long client = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
        NEED(client >= 0 && syscall(SYS_connect, client, &to, sizeof to) == 0);
        NEED(syscall(SYS_write, client, "hello", 5) == 5);
        NEED(syscall(SYS_read, client, b, sizeof b) == 5);
    }
    for (;;) syscall(SYS_pause);
}

static void serve(int count) {
    char b[8];
    for (int i = 0; i < count; i++) {
        int server = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        NEED(server >= 0 && recv(server, b, 8, 0) == 5 && send(server, b, 5, 0) == 5);
    }
}

int main(int argc, char **argv) {
    enum { WARM_UP = 100 };
    NEED(argc == 2);
    int count = atoi(argv[1]);
    struct rlimit limit;
    NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    struct sockaddr_in here = {.sin_family = AF_INET};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof here;
    listening = socket(AF_INET, SOCK_STREAM, 0);
    NEED(bind(listening, (struct sockaddr *)&here, sizeof here) == 0 && listen(listening, 4096) == 0);
    NEED(getsockname(listening, (struct sockaddr *)&here, &length) == 0);
    port = ntohs(here.sin_port);
    pid_t child = fork();
    NEED(child >= 0);
    if (child == 0) clients(count + WARM_UP);
    // What is there once, and not for each connection, comes with the first.
    serve(WARM_UP);
    long before = own_kib();
    serve(count);
    long after = own_kib();
    printf("threads %d\nbytes %ld\n", threads(), (after - before) * 1024 / count);
    kill(child, SIGKILL);
    NEED(waitpid(child, NULL, 0) == child);
    return 0;
}
