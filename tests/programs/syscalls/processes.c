/* Sockets across fork, vfork, posix_spawn and exec. */
#define PROGRAM "processes"
#include "call.h"
#include <sys/fsuid.h>
#include <sys/prctl.h>

static int sv[2];
static char b[64];

static void used_pair(void) {
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && read(sv[1], b, 1) == 1);
}

/* The child's part of a conversation. */
static int answers(int fd) {
    char text[16];
    long n = recv(fd, text, sizeof text, 0);
    return n > 0 && send(fd, text, (size_t)n, 0) == n ? (int)n : 99;
}
static void converse(pid_t child, const char *how) {
    R(send(sv[1], "question", 8, 0), "%s.send", how);
    R(recv(sv[1], b, 8, MSG_WAITALL), "%s.recv", how);
    STATUS(child, "%s.child", how);
}

CASE(forked) {
    used_pair();
    pid_t child = fork();
    if (child == 0) _exit(answers(sv[0]));
    converse(child, "fork");
    child = _Fork();
    if (child == 0) _exit(answers(sv[0]));
    converse(child, "_Fork");
    child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(answers(sv[0]));
    converse(child, "raw-clone");
#ifdef SYS_fork
    child = (pid_t)syscall(SYS_fork);
#else
    child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
    if (child == 0) _exit(answers(sv[0]));
    converse(child, "raw-fork");
}

CASE(forked_from_a_thread_that_waits) {
    used_pair();
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    pid_t child = fork();
    if (child == 0) {
        int own[2];
        unix_pair(SOCK_STREAM, own);
        _exit(write(own[0], "abc", 3) == 3 && read(own[1], b, 3) == 3 ? 3 : 1);
    }
    STATUS(child, "child");
    WAITS(&d, "waits");
    R(write(sv[1], "abc", 3), "write");
    E(&d, "recv");
}

static char stack[1 << 18];
static pid_t cloned(int (*run)(void *), int flags) {
    pid_t child = clone(run, stack + sizeof stack, flags | SIGCHLD, sv);
    NEED(child > 0);
    return child;
}

/* Such a process ends with its thread, and not by exit. */
static int as_a_clone(void *pair) { return answers(*(int *)pair); }
CASE(cloned_on_a_stack) {
    used_pair();
    converse(cloned(as_a_clone, 0), "clone");
    converse(cloned(as_a_clone, CLONE_FS), "clone-fs");
    int other[2];
    unix_pair(SOCK_STREAM, other);
    struct deed d = {0};
    start(&d, do_recv, other[0]);
    converse(cloned(as_a_clone, 0), "while-waiting");
    WAITS(&d, "waits");
    R(write(other[1], "abc", 3), "write");
    E(&d, "recv");
}

CASE(ended_by_its_last_thread) {
    used_pair();
    pid_t child = fork();
    if (child == 0) syscall(SYS_exit, answers(sv[0]));
    converse(child, "raw-exit");
    child = fork();
    if (child == 0) syscall(SYS_exit, 4);
    STATUS(child, "no-call");
}

/* One table of descriptors for two processes: what one closes the other has no more. */
static int takes_over(void *pair) {
    int *of = pair;
    return write(of[0], "child", 5) == 5 && close(of[0]) == 0 && dup2(of[1], of[0]) == of[0] ? 3 : 4;
}
CASE(shares_descriptors) {
    int other[2];
    used_pair();
    unix_pair(SOCK_STREAM, other);
    struct deed d = {0}, e = {0};
    start(&d, do_recv, sv[1]);
    start(&e, do_recv, other[1]);
    pid_t child = cloned(takes_over, CLONE_FILES);
    STATUS(child, "child");
    E(&d, "recv");
    WAITS(&e, "other-waits");
    signal(SIGPIPE, SIG_IGN);
    R(write(sv[0], "x", 1), "write");
    R(write(other[0], "x", 1), "other.write");
    E(&e, "other.recv");
    unix_pair(SOCK_STREAM, other);
    R(write(other[0], "x", 1), "new.write");
    R(read(other[1], b, 1), "new.read");
}

static volatile pid_t made;
static void forks_on(int signal) {
    (void)signal;
    made = fork();
}

/* Waits for bytes that do not come until a handler forks, after the given microseconds. */
static void fork_while_waiting(useconds_t after) {
    handle(SIGALRM, forks_on, 0);
    ualarm(after, 0);
    errno = 0;
    long received = recv(sv[0], b, 8, 0);
    bool interrupted = received == -1 && errno == EINTR;
    if (made == 0) _exit(interrupted ? 7 : 8);
    R(interrupted, "parent.interrupted");
    STATUS(made, "child");
}

CASE(forked_in_a_handler_that_interrupts) {
    used_pair();
    fork_while_waiting(50000);
}

/* From then on calls belong to their threads, and are executed in place. */
static int becomes_who_it_is(void *later) {
    if (later) usleep(100000);
    setfsuid(geteuid());
    return 0;
}

CASE(forked_in_a_handler_after_a_tie) {
    struct other other;
    used_pair();
    begin(&other, becomes_who_it_is, sv);
    fork_while_waiting(200000);
    finish(&other);
}

/* How many descriptors have numbers that this program does not come to. */
static int open_beyond_ours(void) {
    int beyond = 0;
    for (int fd = 64; fd < 4096; fd++) beyond += fcntl(fd, F_GETFD) >= 0;
    return beyond;
}

CASE(forked_after_a_tie) {
    used_pair();
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    becomes_who_it_is(NULL);
    pid_t child = fork();
    if (child == 0) _exit(open_beyond_ours());
    STATUS(child, "child");
    R(write(sv[1], "abc", 3), "write");
    E(&d, "recv");
}

CASE(tied_after_a_fork_past_libc) {
    used_pair();
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    pid_t child = _Fork();
    if (child == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        _exit(open_beyond_ours());
    }
    STATUS(child, "child");
    R(write(sv[1], "abc", 3), "write");
    E(&d, "recv");
}

static void does_nothing(int signal) { (void)signal; }
CASE(vforked_child_has_handlers_of_its_own) {
    used_pair();
    while (send(sv[0], b, sizeof b, MSG_DONTWAIT) > 0) {}
    handle(SIGALRM, does_nothing, 0);
    pid_t child = vfork();
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        _exit(3);
    }
    STATUS(child, "child");
    ualarm(50000, 0);
    R(send(sv[0], b, sizeof b, 0), "send");
}

CASE(both_go_on) {
    used_pair();
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100; i++) NEED(recv(sv[0], b, 8, MSG_WAITALL) == 8);
        _exit(0);
    }
    for (int i = 0; i < 100; i++) NEED(send(sv[1], "12345678", 8, 0) == 8);
    STATUS(child, "child");
    int own[2];
    unix_pair(SOCK_STREAM, own);
    R(write(own[0], "abc", 3), "parent.write");
    R(read(own[1], b, 8), "parent.read");
}

CASE(grandchildren) {
    used_pair();
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) _exit(answers(sv[0]));
        int status;
        waitpid(grandchild, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    converse(child, "grandchild");
}

static void *forks(void *argument) {
    pid_t child = fork();
    if (child == 0) _exit(answers(sv[0]));
    *(pid_t *)argument = child;
    return NULL;
}
CASE(forked_in_a_thread) {
    used_pair();
    pthread_t thread;
    pid_t child;
    NEED(pthread_create(&thread, NULL, forks, &child) == 0);
    pthread_join(thread, NULL);
    converse(child, "thread");
}

CASE(many_children) {
    long right = 0;
    used_pair();
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0) _exit(write(sv[0], "c", 1) == 1 ? 0 : 1);
        int status;
        NEED(waitpid(child, &status, 0) == child);
        right += status == 0 && read(sv[1], b, 1) == 1;
    }
    R(right, "right");
    R(descriptors(), "open");
}

CASE(vforked) {
    used_pair();
    pid_t child = vfork();
    if (child == 0) {
        dup2(sv[0], 0), dup2(sv[0], 1);
        close(sv[0]), close(sv[1]);
        execlp("cat", "cat", (char *)NULL);
        _exit(99);
    }
    R(write(sv[1], "through cat", 11), "write");
    R(recv(sv[1], b, 11, MSG_WAITALL), "read");
    R(write(sv[0], "own", 3), "own-end");
    R(recv(sv[1], b, 3, MSG_WAITALL), "own-end.read");
    shutdown(sv[1], SHUT_WR);
    STATUS(child, "child");
}

CASE(spawned) {
    used_pair();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, sv[0], 0);
    posix_spawn_file_actions_adddup2(&actions, sv[0], 1);
    posix_spawn_file_actions_addclose(&actions, sv[1]);
    pid_t child;
    R(posix_spawnp(&child, "cat", &actions, NULL, (char *[]){"cat", NULL}, environ), "spawn");
    R(write(sv[1], "through cat", 11), "write");
    R(recv(sv[1], b, 11, MSG_WAITALL), "read");
    shutdown(sv[1], SHUT_WR);
    STATUS(child, "child");
    R(posix_spawnp(&child, "no-such-program", NULL, NULL, (char *[]){"no", NULL}, environ), "no-program");
}

CASE(shell) {
    used_pair();
    char command[64];
    fcntl(sv[0], F_SETFD, 0);
    snprintf(command, sizeof command, "echo from shell >&%d", sv[0]);
    R(system(command), "system");
    R(recv(sv[1], b, 11, MSG_WAITALL), "read");
    TEXT(b, 10, "bytes");
}

/* Runs another case of this program in a new image, with a descriptor's number. */
static pid_t executed(const char *name, int fd) {
    pid_t child = fork();
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", fd);
        setenv("CASE_FD", number, 1);
        execl("/proc/self/exe", "processes", name, (char *)NULL);
        _exit(99);
    }
    return child;
}

CASE(image) {
    const char *number = getenv("CASE_FD");
    if (number) _exit(answers(atoi(number)));
    SAID("yes", "alone");
}

CASE(image_without) {
    const char *number = getenv("CASE_FD");
    if (number) _exit(fcntl(atoi(number), F_GETFD) == -1 && errno == EBADF ? 11 : 12);
    SAID("yes", "alone");
}

CASE(new_images) {
    used_pair();
    converse(executed("image", sv[0]), "kept");
    NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
    STATUS(executed("image_without", sv[0]), "cloexec");
    fcntl(sv[0], F_SETFD, 0);
    converse(executed("image", sv[0]), "cloexec-cleared");
    int on = 1;
    ioctl(sv[0], FIOCLEX, &on);
    STATUS(executed("image_without", sv[0]), "fioclex");
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    STATUS(executed("image_without", fd), "by-fcntl");
}

CASE(descriptors_of_an_image) {
    used_pair();
    char command[128];
    // The shell's own: standard ones, the pair, and the directory that ls reads.
    snprintf(command, sizeof command, "exit $(ls /proc/self/fd | grep -c .)");
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(99);
    }
    STATUS(child, "count");
}

static bool listens(int fd) {
    int value = 0;
    socklen_t length = sizeof value;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) == 0 && value == 1;
}

/* All that a connection gives until its other end is closed. */
static void converse_to_the_end(int client, const char *said, const char *how) {
    char heard[256];
    size_t length = 0;
    long n;
    R(write(client, said, strlen(said)), "%s.write", how);
    R(shutdown(client, SHUT_WR), "%s.shutdown", how);
    while (length < sizeof heard && (n = read(client, heard + length, sizeof heard - length)) > 0) length += (size_t)n;
    TEXT(heard, length, "%s.heard", how);
    close(client);
}

/* A server that has a program of its own for each connection, which knows nothing but its standard
   streams. */
CASE(program_for_a_connection) {
    static char *const programs[][4] = {
        {"cat", NULL},
        {"sh", "-c", "read first; echo \"got $first\"; exec cat", NULL},
        {"sh", "-c", "cat | tr a-z A-Z; echo end >&2", NULL},
    };
    int listening = listener();
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        int client = connected_to(listening);
        pid_t child = fork();
        if (child == 0) {
            int fd = accept(listening, NULL, NULL);
            NEED(fd >= 0);
            for (int to = 0; to < 3; to++) NEED(dup2(fd, to) == to);
            close(fd), close(listening), close(client);
            execvp(programs[i][0], programs[i]);
            _exit(127);
        }
        char how[16];
        snprintf(how, sizeof how, "%zu", i);
        converse_to_the_end(client, "one\ntwo\nthree\n", how);
        STATUS(child, "%s.program", how);
    }
    // One that is asked to wait accepts by itself.
    int client = connected_to(listening);
    pid_t child = fork();
    if (child == 0) {
        NEED(dup2(listening, 0) == 0);
        close(listening), close(client);
        execl("/proc/self/exe", PROGRAM, "accepts_from_its_input", NULL);
        _exit(127);
    }
    converse_to_the_end(client, "question", "waits");
    STATUS(child, "waits.program");
}

CASE(accepts_from_its_input) {
    if (listens(0)) {
        int fd = accept(0, NULL, NULL);
        _exit(answers(fd) == 8 ? 0 : 1);
    }
    YES(true, "not-asked");
}

CASE(killed_in_a_call) {
    used_pair();
    pid_t child = fork();
    if (child == 0) {
        close(sv[1]);
        recv(sv[0], b, 1, 0);
        _exit(1);
    }
    close(sv[0]);
    pause_ms(30);
    kill(child, SIGKILL);
    STATUS(child, "child");
    R(recv(sv[1], b, 1, 0), "end");
}

CASE(terminated_in_a_call) {
    used_pair();
    pid_t child = fork();
    if (child == 0) {
        recv(sv[0], b, 1, 0);
        _exit(1);
    }
    pause_ms(30);
    kill(child, SIGTERM);
    STATUS(child, "child");
}

static void *exits_soon(void *argument) {
    (void)argument;
    pause_ms(20);
    exit(9);
}
CASE(exit_while_another_waits) {
    used_pair();
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exits_soon, NULL);
        recv(sv[0], b, 1, 0);
        _exit(1);
    }
    STATUS(child, "child");
}

static void *execs_soon(void *argument) {
    (void)argument;
    pause_ms(20);
    execlp("sh", "sh", "-c", "exit 21", (char *)NULL);
    _exit(99);
}
CASE(exec_while_another_waits) {
    used_pair();
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, execs_soon, NULL);
        recv(sv[0], b, 1, 0);
        _exit(1);
    }
    STATUS(child, "child");
}

static int at_fork[3];
static void before(void) { at_fork[0] = (int)write(sv[0], "1", 1); }
static void parent(void) { at_fork[1] = (int)write(sv[0], "2", 1); }
static void child_too(void) { at_fork[2] = (int)write(sv[0], "3", 1); }
CASE(handlers_at_fork) {
    used_pair();
    pthread_atfork(before, parent, child_too);
    pid_t child = fork();
    if (child == 0) _exit(at_fork[2] == 1 ? 0 : 1);
    STATUS(child, "child");
    R(at_fork[0] + at_fork[1], "parent");
    R(recv(sv[1], b, 3, MSG_WAITALL), "bytes");
}

CASE(daemonised) {
    used_pair();
    pid_t child = fork();
    if (child == 0) {
        if (daemon(1, 1) == 0) answers(sv[0]);
        _exit(0);
    }
    converse(child, "daemon");
}
