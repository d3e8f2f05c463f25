/* A library whose constructor runs before those of the preloaded libraries, and calls every
 * function that they replace: each works then, by whatever name. A function's case is printed when
 * the call has come back. */
#include "case.h"

#include <dlfcn.h>
#include <grp.h>
#include <poll.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <threads.h>

/* CALL(name, arguments...): by the name itself, whatever its declaration says; types that do not
   matter here are left out. */
#define CALL(name, ...)                                                          \
    do {                                                                         \
        /* SAFETY: an assembler's name, no code; all arguments are in registers. */ \
        extern long call_##name() __asm__(#name);                                \
        call_##name(__VA_ARGS__);                                                \
        HOLDS(true, "first." #name);                                             \
    } while (0)

/* The same for names to which nothing is linked any more, by their version. */
#define CALL_OLD(name, ...)                                      \
    do {                                                         \
        extern long call_##name();                               \
        /* SAFETY: names a symbol's version; no code. */         \
        __asm__(".symver call_" #name "," #name "@GLIBC_2.2.5"); \
        call_##name(__VA_ARGS__);                                \
        HOLDS(true, "first." #name);                             \
    } while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static mtx_t mtx;
static cnd_t cnd;
static struct timespec past = {1, 0}, none = {0, 0};
static char buffer[64];
static volatile bool is_over;
static char child_stack[1 << 16];

static void *wake(void *unused) {
    while (!is_over) {
        pthread_cond_broadcast(&cond);
        cnd_broadcast(&cnd);
        sched_yield();
    }
    return unused;
}

static int do_nothing(void *unused) {
    (void)unused;
    return 0;
}

static int leave(void *unused) {
    (void)unused;
    _exit(0);
}

static void mutexes(void) {
    CALL(pthread_mutex_init, &mutex, NULL);
    CALL(pthread_mutex_lock, &mutex);
    CALL(pthread_mutex_unlock, &mutex);
    CALL(pthread_mutex_trylock, &mutex);
    CALL(pthread_mutex_timedlock, &mutex, &past);
    CALL(pthread_mutex_clocklock, &mutex, CLOCK_MONOTONIC, &past);
    pthread_mutex_unlock(&mutex);
    CALL(pthread_mutex_destroy, &mutex);
    CALL_OLD(__pthread_mutex_init, &mutex, NULL);
    CALL_OLD(__pthread_mutex_lock, &mutex);
    CALL_OLD(__pthread_mutex_unlock, &mutex);
    CALL_OLD(__pthread_mutex_trylock, &mutex);
    pthread_mutex_unlock(&mutex);
    CALL_OLD(__pthread_mutex_destroy, &mutex);
    pthread_mutex_init(&mutex, NULL);
    CALL(mtx_init, &mtx, mtx_timed);
    CALL(mtx_lock, &mtx);
    CALL(mtx_unlock, &mtx);
    CALL(mtx_trylock, &mtx);
    CALL(mtx_timedlock, &mtx, &past);
    mtx_unlock(&mtx);
    CALL(pthread_spin_init, &spin, 0);
    CALL(pthread_spin_lock, &spin);
    CALL(pthread_spin_trylock, &spin);
    CALL(pthread_spin_unlock, &spin);
    CALL(pthread_spin_destroy, &spin);
}

static void conditions(void) {
    CALL(pthread_cond_init, &cond, NULL);
    CALL(pthread_cond_signal, &cond);
    CALL(pthread_cond_broadcast, &cond);
    CALL(cnd_init, &cnd);
    CALL(cnd_signal, &cnd);
    CALL(cnd_broadcast, &cnd);
    pthread_mutex_lock(&mutex);
    mtx_lock(&mtx);
    CALL(pthread_cond_timedwait, &cond, &mutex, &past);
    CALL(pthread_cond_clockwait, &cond, &mutex, CLOCK_MONOTONIC, &past);
    CALL(cnd_timedwait, &cnd, &mtx, &past);
    pthread_t waker;
    CALL(pthread_create, &waker, NULL, wake, NULL);
    CALL(pthread_cond_wait, &cond, &mutex);
    CALL(cnd_wait, &cnd, &mtx);
    is_over = true;
    pthread_join(waker, NULL);
    pthread_mutex_unlock(&mutex);
    mtx_unlock(&mtx);
    CALL(pthread_cond_destroy, &cond);
    CALL(cnd_destroy, &cnd);
    CALL(mtx_destroy, &mtx);
}

static void rwlocks(void) {
    CALL(pthread_rwlock_init, &rwlock, NULL);
    CALL(pthread_rwlock_rdlock, &rwlock);
    CALL(pthread_rwlock_tryrdlock, &rwlock);
    CALL(pthread_rwlock_timedrdlock, &rwlock, &past);
    CALL(pthread_rwlock_clockrdlock, &rwlock, CLOCK_MONOTONIC, &past);
    CALL(pthread_rwlock_timedwrlock, &rwlock, &past);
    CALL(pthread_rwlock_clockwrlock, &rwlock, CLOCK_MONOTONIC, &past);
    for (int i = 0; i < 4; i++) pthread_rwlock_unlock(&rwlock);
    CALL(pthread_rwlock_wrlock, &rwlock);
    CALL(pthread_rwlock_trywrlock, &rwlock);
    CALL(pthread_rwlock_unlock, &rwlock);
    CALL(pthread_rwlock_destroy, &rwlock);
    CALL_OLD(__pthread_rwlock_init, &rwlock, NULL);
    CALL_OLD(__pthread_rwlock_rdlock, &rwlock);
    CALL_OLD(__pthread_rwlock_tryrdlock, &rwlock);
    CALL_OLD(__pthread_rwlock_unlock, &rwlock);
    pthread_rwlock_unlock(&rwlock);
    CALL_OLD(__pthread_rwlock_wrlock, &rwlock);
    CALL_OLD(__pthread_rwlock_trywrlock, &rwlock);
    pthread_rwlock_unlock(&rwlock);
    CALL_OLD(__pthread_rwlock_destroy, &rwlock);
}

static void libraries(void) {
    CALL(dlopen, NULL, 1);
    CALL(dlclose, dlopen(NULL, 1));
    CALL(dlmopen, 0L, "libc.so.6", 2);
    CALL(dlsym, NULL, "getpid");
    CALL(dlvsym, NULL, "getpid", "GLIBC_2.2.5");
}

static void descriptors(void) {
    int pair[2], spare;
    CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, pair);
    CALL(dup, pair[0]);
    CALL(dup2, pair[0], 100);
    CALL(__dup2, pair[0], 101);
    CALL(dup3, pair[0], 102, 0);
    CALL(close, 100);
    CALL(__close, 101);
    CALL(close_range, 102, 110, 0);
    CALL(closefrom, 100);
    CALL(fcntl, pair[0], F_GETFL);
    CALL(__fcntl, pair[0], F_GETFL);
    CALL(fcntl64, pair[0], F_GETFL);
    CALL(ioctl, pair[0], 0L, 0L);
    struct iovec part = {buffer, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr messages = {.msg_hdr = message};
    CALL(write, pair[0], "x", 1L);
    CALL(__write, pair[0], "x", 1L);
    CALL(writev, pair[0], &part, 1);
    CALL(send, pair[0], "x", 1L, 0);
    CALL(__send, pair[0], "x", 1L, 0);
    CALL(sendto, pair[0], "x", 1L, 0, NULL, 0);
    CALL(sendmsg, pair[0], &message, 0);
    CALL(sendmmsg, pair[0], &messages, 1, 0);
    for (int i = 0; i < 3; i++) send(pair[0], "x", 1, 0);
    CALL(read, pair[1], buffer, 1L);
    CALL(__read, pair[1], buffer, 1L);
    CALL(__read_chk, pair[1], buffer, 1L, 64L);
    CALL(readv, pair[1], &part, 1);
    CALL(recv, pair[1], buffer, 1L, 0);
    CALL(__recv_chk, pair[1], buffer, 1L, 64L, 0);
    CALL(recvfrom, pair[1], buffer, 1L, 0, NULL, NULL);
    CALL(__recvfrom_chk, pair[1], buffer, 1L, 64L, 0, NULL, NULL);
    CALL(recvmsg, pair[1], &message, 0);
    CALL(recvmmsg, pair[1], &messages, 1, 0, NULL);
    CALL(sendfile, pair[0], -1, NULL, 1L);
    CALL(sendfile64, pair[0], -1, NULL, 1L);
    CALL(splice, -1, NULL, pair[0], NULL, 1L, 0);
    CALL(socket, AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/no/such/directory/socket"};
    socklen_t length = sizeof address;
    CALL(bind, pair[0], &address, length);
    CALL(listen, pair[0], 1);
    CALL(connect, pair[0], &address, length);
    CALL(__connect, pair[0], &address, length);
    CALL(accept, pair[0], NULL, NULL);
    CALL(accept4, pair[0], NULL, NULL, 0);
    CALL(getsockname, pair[0], &address, &length);
    CALL(getpeername, pair[0], &address, &length);
    length = sizeof spare;
    CALL(getsockopt, pair[0], SOL_SOCKET, SO_TYPE, &spare, &length);
    CALL(setsockopt, pair[0], SOL_SOCKET, SO_SNDBUF, &(int){4096}, sizeof(int));
    CALL(shutdown, pair[0], SHUT_WR);
    close(pair[0]), close(pair[1]);
}

static void waits(void) {
    struct epoll_event event = {.events = EPOLLIN};
    fd_set set;
    FD_ZERO(&set);
    struct timeval no_time = {0, 0};
    struct pollfd list = {.fd = STDOUT_FILENO};
    CALL(poll, &list, 1L, 0);
    CALL(__poll, &list, 1L, 0);
    CALL(__poll_chk, &list, 1L, 0, sizeof list);
    CALL(ppoll, &list, 1L, &none, NULL);
    CALL(__ppoll_chk, &list, 1L, &none, NULL, sizeof list);
    CALL(select, 1, &set, NULL, NULL, &no_time);
    CALL(__select, 1, &set, NULL, NULL, &no_time);
    CALL(pselect, 1, &set, NULL, NULL, &none, NULL);
    CALL(epoll_create, 1);
    CALL(epoll_create1, 0);
    int epoll = epoll_create1(0);
    CALL(epoll_ctl, epoll, EPOLL_CTL_ADD, -1, &event);
    CALL(epoll_wait, epoll, &event, 1, 0);
    CALL(epoll_pwait, epoll, &event, 1, 0, NULL);
    CALL(epoll_pwait2, epoll, &event, 1, &none, NULL);
    sigset_t signals;
    sigemptyset(&signals);
    CALL(signalfd, -1, &signals, 0);
    close(epoll);
}

static void files(void) {
    struct iovec part = {buffer, 1};
    CALL(open, "/dev/zero", O_RDONLY);
    CALL(open64, "/dev/zero", O_RDONLY);
    CALL(__open, "/dev/zero", O_RDONLY);
    CALL(__open64, "/dev/zero", O_RDONLY);
    CALL(__open_2, "/dev/zero", O_RDONLY);
    CALL(__open64_2, "/dev/zero", O_RDONLY);
    CALL(openat, AT_FDCWD, "/dev/zero", O_RDONLY);
    CALL(openat64, AT_FDCWD, "/dev/zero", O_RDONLY);
    CALL(__openat_2, AT_FDCWD, "/dev/zero", O_RDONLY);
    CALL(__openat64_2, AT_FDCWD, "/dev/zero", O_RDONLY);
    CALL(creat, "/no/such/directory/file", 0600);
    CALL(creat64, "/no/such/directory/file", 0600);
    static long about[64];
    CALL(stat, "/", about);
    CALL(stat64, "/", about);
    CALL(lstat, "/", about);
    CALL(lstat64, "/", about);
    CALL(fstatat, AT_FDCWD, "/", about, 0);
    CALL(fstatat64, AT_FDCWD, "/", about, 0);
    CALL(statx, AT_FDCWD, "/", 0, 0, about);
    CALL(__xstat, 1, "/", about);
    CALL(__xstat64, 1, "/", about);
    CALL(__lxstat, 1, "/", about);
    CALL(__lxstat64, 1, "/", about);
    CALL(__fxstatat, 1, AT_FDCWD, "/", about, 0);
    CALL(__fxstatat64, 1, AT_FDCWD, "/", about, 0);
    CALL(opendir, "/");
    int zero = open("/dev/zero", O_RDWR);
    CALL(pread, zero, buffer, 1L, 0L);
    CALL(pread64, zero, buffer, 1L, 0L);
    CALL(__pread64, zero, buffer, 1L, 0L);
    CALL(__pread_chk, zero, buffer, 1L, 0L, 64L);
    CALL(__pread64_chk, zero, buffer, 1L, 0L, 64L);
    CALL(pwrite, zero, buffer, 1L, 0L);
    CALL(pwrite64, zero, buffer, 1L, 0L);
    CALL(__pwrite64, zero, buffer, 1L, 0L);
    CALL(preadv, zero, &part, 1, 0L);
    CALL(preadv64, zero, &part, 1, 0L);
    CALL(pwritev, zero, &part, 1, 0L);
    CALL(pwritev64, zero, &part, 1, 0L);
    CALL(fsync, zero);
    CALL(fdatasync, zero);
    CALL(fdopen, zero, "r");
    FILE *stream = fopen("/dev/zero", "r");
    stream = freopen("/dev/zero", "r", stream);
    HOLDS(stream != NULL, "first.freopen");
    stream = freopen64("/dev/zero", "r", stream);
    HOLDS(stream != NULL, "first.freopen64");
    CALL(fclose, stream);
    stream = popen("true", "r");
    HOLDS(stream != NULL, "first.popen");
    CALL(pclose, stream);
}

static void processes(void) {
    pid_t child = vfork();
    if (child == 0) _exit(0);
    HOLDS(waitpid(child, NULL, 0) == child, "first.vfork");
    extern pid_t __vfork(void);
    child = __vfork();
    if (child == 0) _exit(0);
    HOLDS(waitpid(child, NULL, 0) == child, "first.__vfork");
    CALL(clone, leave, child_stack + sizeof child_stack - 64, SIGCHLD, NULL);
    CALL(__clone, leave, child_stack + sizeof child_stack - 64, SIGCHLD, NULL);
    while (wait(NULL) > 0) {}
    thrd_t thread;
    CALL(thrd_create, &thread, do_nothing, NULL);
    thrd_join(thread, NULL);
    CALL(syscall, (long)SYS_getpid);
    struct sched_param parameter = {0};
    CALL(sched_setparam, 0, &parameter);
    CALL(sched_setscheduler, 0, SCHED_OTHER, &parameter);
    CALL(pthread_setschedparam, pthread_self(), SCHED_OTHER, &parameter);
    CALL(pthread_setschedprio, pthread_self(), 0);
    CALL(setpriority, PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0));
    CALL(nice, 0);
    CALL(prctl, -1L, 0L, 0L, 0L, 0L);
    CALL(pkey_alloc, ~0, 0);
    CALL(unshare, 0);
    CALL(setns, -1, 0);
    CALL(chroot, "/no/such/directory");
    CALL(capset, NULL, NULL);
}

static void identities(void) {
    gid_t groups[NGROUPS_MAX];
    int count = getgroups(NGROUPS_MAX, groups);
    CALL(setgroups, (long)count, groups);
    CALL(initgroups, "no-such-user", getgid());
    setgroups((size_t)count, groups);
    CALL(setgid, getgid());
    CALL(setegid, getegid());
    CALL(setregid, -1, -1);
    CALL(setresgid, -1, -1, -1);
    CALL(setfsgid, getegid());
    CALL(setfsuid, geteuid());
    CALL(setuid, getuid());
    CALL(seteuid, geteuid());
    CALL(setreuid, -1, -1);
    CALL(setresuid, -1, -1, -1);
}

static void signals(void) {
    CALL(sigaction, SIGUSR2, NULL, NULL);
    CALL(__sigaction, SIGUSR2, NULL, NULL);
    CALL(signal, SIGUSR2, SIG_IGN);
    CALL(bsd_signal, SIGUSR2, SIG_IGN);
    CALL(ssignal, SIGUSR2, SIG_IGN);
    CALL(sysv_signal, SIGUSR2, SIG_IGN);
    CALL(__sysv_signal, SIGUSR2, SIG_IGN);
    CALL(sigset, SIGUSR2, SIG_DFL);
    CALL(siginterrupt, SIGUSR2, 0);
}

/* Each jump comes back to a place further down. */
static void jumps(void) {
    extern void __longjmp_chk(jmp_buf, int) __attribute__((noreturn));
    jmp_buf place;
    sigjmp_buf with_signals;
    if (!setjmp(place)) longjmp(place, 1);
    HOLDS(true, "first.longjmp");
    if (!_setjmp(place)) _longjmp(place, 1);
    HOLDS(true, "first._longjmp");
    if (!setjmp(place)) __longjmp_chk(place, 1);
    HOLDS(true, "first.__longjmp_chk");
    if (!sigsetjmp(with_signals, 1)) siglongjmp(with_signals, 1);
    HOLDS(true, "first.siglongjmp");
}

__attribute__((constructor)) static void call_everything(void) {
    libraries();
    signals();
    mutexes();
    conditions();
    rwlocks();
    descriptors();
    waits();
    files();
    processes();
    identities();
    jumps();
}
