/* What happens beside calls: other libraries, processes with shared memory, numbers and signals
   that somebody else needs. */
#define PROGRAM "beside"
#include "call.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#ifdef CASE_LIBRARY
void *library_recv(void) { return (void *)recv; }
#else

static int sv[2];
static char b[16];

static void pass_something(const char *name) {
    R(write(sv[1], "abc", 3), "%s.write", name);
    R(read(sv[0], b, sizeof b), "%s.read", name);
}

CASE(deep_binding) {
    void *library = dlopen(getenv("CASE_LIBRARY"), RTLD_NOW | RTLD_DEEPBIND);
    NEED(library);
    void *(*its_recv)(void) = (void *(*)(void))dlsym(library, "library_recv");
    NEED(its_recv);
    YES(its_recv() == (void *)recv, "same-function");
}

/* Whatever others have open under large numbers stays theirs. */
CASE(large_numbers) {
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    WAITS(&d, "waits");
    int list[64], count = 0, taken = 0;
    DIR *directory = opendir("/proc/self/fd");
    NEED(directory);
    for (struct dirent *e; (e = readdir(directory)) && count < 64;)
        if (atoi(e->d_name) > 500) list[count++] = atoi(e->d_name);
    closedir(directory);
    for (int i = 0; i < count; i++) {
        taken += dup2(1, list[i]) >= 0;
        taken += dup3(1, list[i], O_CLOEXEC) >= 0;
        taken += close(list[i]) == 0;
        taken += syscall(SYS_close, list[i]) == 0;
        taken += syscall(SYS_dup2, 1, list[i]) >= 0;
    }
    R(syscall(SYS_close_range, 500, ~0U, 0), "close_range");
    R(taken, "taken");
    NEED(write(sv[1], "x", 1) == 1);
    E(&d, "recv");
    pass_something("after");
}

static volatile int handled;
static void note(int signal) { handled = signal; }

CASE(every_signal_handled) {
    for (int i = 1; i <= SIGRTMAX; i++) {
        struct sigaction action = {.sa_handler = note};
        if (i != SIGKILL && i != SIGSTOP && (i < 32 || i >= SIGRTMIN)) R(sigaction(i, &action, NULL), "sigaction.%d", i);
    }
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, do_recv, sv[0]);
    pthread_kill(d.other.thread, SIGUSR1);
    E(&d, "recv");
    R(handled == SIGUSR1, "handled");
}

/* A send that a handler interrupts with nothing done goes on, or ends, as the handler says. */
CASE(nothing_was_sent) {
    static const int FLAGS[] = {SA_RESTART, 0};
    static char rest[1 << 20];
    for (int i = 0; i < 2; i++) {
        const char *name = FLAGS[i] ? "restarts" : "ends";
        handled = 0;
        handle(SIGUSR1, note, FLAGS[i]);
        unix_pair(SOCK_STREAM, sv);
        filled(sv[0]);
        struct deed d = {.bytes = b, .size = sizeof b};
        start(&d, do_send, sv[0]);
        WAITS(&d, "%s.waits", name);
        pthread_kill(d.other.thread, SIGUSR1);
        pause_ms(50);
        R(handled == SIGUSR1, "%s.handled", name);
        YES(is_done(&d.other) == (FLAGS[i] == 0), "%s.as-the-handler-says", name);
        for (int n = 0; n < 2000 && !is_done(&d.other); n++) {
            recv(sv[1], rest, sizeof rest, MSG_DONTWAIT);
            pause_ms(1);
        }
        E(&d, "%s.send", name);
    }
}

/* A handler on a stack of its own, above that of the thread, jumps within itself. */
static void jump_within(int signal) {
    jmp_buf here;
    handled = signal;
    if (setjmp(here) == 0) longjmp(here, 1);
}

static char *above;
static void recv_with_stack(struct deed *d) {
    stack_t stack = {.ss_sp = above, .ss_size = 1 << 16};
    NEED(sigaltstack(&stack, NULL) == 0);
    d->result = recv(d->fd, d->own, sizeof d->own, 0);
}

CASE(jump_on_another_stack) {
    above = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(above != MAP_FAILED);
    handle(SIGUSR1, jump_within, SA_RESTART | SA_ONSTACK);
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, recv_with_stack, sv[0]);
    for (int i = 0; i < 3; i++) pthread_kill(d.other.thread, SIGUSR1), pause_ms(5);
    WAITS(&d, "waits");
    R(handled == SIGUSR1, "handled");
    NEED(write(sv[1], "x", 1) == 1);
    E(&d, "recv");
    pass_something("after");
}

/* The child's table of descriptors is its own, its memory is not. */
static int child(void *unused) {
    (void)unused;
    close(sv[0]);
    long n = write(sv[1], "child", 5);
    close(sv[1]);
    _exit(n == 5 ? 7 : 8);
}
static void child_alone(void) { child(NULL); }

/* The top of a new stack, with the function to which the system call returns on it. */
static void **stack_for(void (*run)(void)) {
    static _Alignas(16) void *stack[8192];
    void **top = stack + 8000;
    *top = (void *)run;
    return top;
}

/* From here on the calling process dies if it opens a file. */
static void open_no_more(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

CASE(confined_child) {
    unix_pair(SOCK_STREAM, sv);
    pid_t pid = fork();
    if (pid == 0) {
        open_no_more();
        _exit(write(sv[1], "abc", 3) == 3 ? 0 : 1);
    }
    STATUS(pid, "child");
    R(read(sv[0], b, sizeof b), "read");
}

CASE(idle_children) {
    unix_pair(SOCK_STREAM, sv);
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        if (pid == 0) _exit(i);
        STATUS(pid, "child.%d", i);
    }
    pass_something("after");
}

/* Calls by the child and its parent, after the child was made in one of three ways. */
static void after_child(const char *name, long pid) {
    NEED(pid > 0);
    STATUS((pid_t)pid, "%s", name);
    R(read(sv[0], b, sizeof b), "%s.from-child", name);
    R(write(sv[1], "x", 1), "%s.own", name);
}

CASE(child_by_clone) {
    static _Alignas(16) char stack[1 << 16];
    unix_pair(SOCK_STREAM, sv);
    pass_something("before");
    after_child("clone", clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
}

CASE(child_by_raw_clone) {
    unix_pair(SOCK_STREAM, sv);
    pass_something("before");
    after_child("raw", syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, stack_for(child_alone), NULL, NULL, 0));
}

CASE(child_by_raw_clone3) {
    struct clone_args args = {.flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD, .stack_size = 4096};
    args.stack = (uintptr_t)stack_for(child_alone) - args.stack_size;
    unix_pair(SOCK_STREAM, sv);
    pass_something("before");
    after_child("raw", syscall(SYS_clone3, &args, sizeof args));
}
#endif
