/* Signal handlers that interrupt the allocator, and make calls: the first of a process, of a route,
   or ones that block. */
#define PROGRAM "handlers"
#include "call.h"

/* An allocator with one lock, which is not to be taken twice by a thread. A signal can be raised
   while it is held. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
static volatile int lock, raised;

static void enter(void) {
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
    if (raised && syscall(SYS_gettid) == raised) {
        raised = 0;
        raise(SIGUSR1);
    }
}
static void leave(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

#define LOCKED(expression) ({ enter(); __typeof__(expression) result_ = (expression); leave(); result_; })
void *malloc(size_t n) { return LOCKED(__libc_malloc(n)); }
void *calloc(size_t n, size_t of) { return LOCKED(__libc_calloc(n, of)); }
void *realloc(void *p, size_t n) { return LOCKED(__libc_realloc(p, n)); }
void *memalign(size_t by, size_t n) { return LOCKED(__libc_memalign(by, n)); }
void *aligned_alloc(size_t by, size_t n) { return memalign(by, n); }
int posix_memalign(void **p, size_t by, size_t n) { return (*p = memalign(by, n)) ? 0 : ENOMEM; }
void free(void *p) {
    enter();
    __libc_free(p);
    leave();
}

static void *volatile kept;
/* Has the handler of SIGUSR1 run in this thread while it holds the allocator's lock. */
static void interrupt_malloc(void) {
    raised = (int)syscall(SYS_gettid);
    kept = malloc(100);
    free(kept);
}

static int sv[2], listening;
static volatile long result;
static char b[16];

/* A pair of which the library does not know: no call was moved yet. */
static void quiet_pair(void) { NEED(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, sv) == 0); }

/* As many calls as an ordinary program makes afterwards. */
static void go_on(const char *name) {
    long right = 0;
    for (int i = 0; i < 200; i++) right += write(sv[0], "y", 1) == 1 && read(sv[1], b, 1) == 1;
    R(right, "%s", name);
}

static void writes(int signal) {
    (void)signal;
    result = write(sv[0], "x", 1);
}
static void reads(int signal) {
    (void)signal;
    result = read(sv[1], b, 16);
}
static void accepts(int signal) {
    (void)signal;
    result = accept(listening, NULL, NULL) >= 0;
}
static void forks(int signal) {
    (void)signal;
    pid_t child = fork();
    if (child == 0) _exit(write(sv[0], "x", 1) == 1 ? 7 : 8);
    int status = 0;
    waitpid(child, &status, 0);
    result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

CASE(first_call) {
    handle(SIGUSR1, writes, 0);
    quiet_pair();
    interrupt_malloc();
    R(result, "write");
    R(read(sv[1], b, 16), "read");
    go_on("afterwards");
}

CASE(first_call_leaves_its_signal_open) {
    handle(SIGUSR1, writes, SA_NODEFER | SA_RESTART);
    quiet_pair();
    interrupt_malloc();
    R(result, "write");
    R(read(sv[1], b, 16), "read");
    go_on("afterwards");
}

CASE(first_call_on_another_stack) {
    static char other[1 << 16];
    stack_t stack = {.ss_sp = other, .ss_size = sizeof other};
    NEED(sigaltstack(&stack, NULL) == 0);
    handle(SIGUSR1, writes, SA_ONSTACK | SA_NODEFER);
    quiet_pair();
    interrupt_malloc();
    R(result, "write");
    R(read(sv[1], b, 16), "read");
    go_on("afterwards");
}

CASE(first_call_after_a_reset) {
    handle(SIGUSR1, writes, SA_RESETHAND | SA_NODEFER);
    quiet_pair();
    interrupt_malloc();
    R(result, "write");
    R(read(sv[1], b, 16), "read");
    go_on("afterwards");
}

static int in_thread(void *unused) {
    (void)unused;
    interrupt_malloc();
    return 0;
}
CASE(first_call_of_a_thread) {
    handle(SIGUSR1, writes, 0);
    quiet_pair();
    struct other other = {0};
    begin(&other, in_thread, NULL);
    finish(&other);
    R(result, "write");
    R(read(sv[1], b, 16), "read");
    go_on("afterwards");
}

CASE(first_call_of_a_child) {
    handle(SIGUSR1, forks, 0);
    quiet_pair();
    go_on("before");
    interrupt_malloc();
    R(result, "child");
    R(read(sv[1], b, 16), "read");
    go_on("afterwards");
}

/* Threads there are, but none that may block with the call. */
CASE(call_that_may_block) {
    handle(SIGUSR1, accepts, 0);
    quiet_pair();
    listening = listener();
    int client = connected_to(listening);
    go_on("before");
    interrupt_malloc();
    R(result, "accept");
    close(client);
    go_on("afterwards");
}

CASE(bytes_are_there) {
    handle(SIGUSR1, reads, 0);
    quiet_pair();
    NEED(syscall(SYS_write, sv[0], "abc", 3) == 3);
    interrupt_malloc();
    R(result, "read");
    go_on("afterwards");
}

static volatile int is_in_handler;
static void waits_and_writes(int signal) {
    (void)signal;
    is_in_handler = 1;
    pause_ms(50);
    result = write(sv[0], "x", 1);
}

/* Somebody else's call needs a thread meanwhile. */
CASE(others_need_a_thread) {
    handle(SIGUSR1, waits_and_writes, 0);
    quiet_pair();
    listening = listener();
    int client = connected_to(listening);
    go_on("before");
    struct other other = {0};
    begin(&other, in_thread, NULL);
    while (!is_in_handler) sched_yield();
    YES(accept(listening, NULL, NULL) >= 0, "accept");
    finish(&other);
    R(result, "write");
    R(read(sv[1], b, 16), "read");
    close(client);
    go_on("afterwards");
}

static void notes(int signal) { result += signal == SIGUSR1; }

/* What a handler leaves on the stack, or a program that blocks signals for good: no reason to leave
   calls in place. */
static __attribute__((noinline)) void with_room(void) {
    volatile char room[64 << 10];
    room[0] = 1;
    quiet_pair();
    go_on("in-old-room");
    room[1] = room[0];
}
CASE(handlers_that_have_returned) {
    handle(SIGUSR1, notes, 0);
    handle(SIGUSR2, notes, 0);
    for (int i = 0; i < 5; i++) interrupt_malloc();
    R(result, "handled");
    sigset_t blocked;
    sigemptyset(&blocked), sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    with_room();
    go_on("afterwards");
}
