/* Files, pipes and other descriptors that are not sockets. */
#define PROGRAM "files"
#include "call.h"
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static char b[64];
static char place[] = "/tmp/case-dir-XXXXXX";

static void in_a_place(void) { NEED(mkdtemp(place) && chdir(place) == 0); }
static void gone(void) { NEED(chdir("/") == 0 && rmdir(place) == 0); }

CASE(read_and_write) {
    in_a_place();
    int fd = (int)R(open("file", O_RDWR | O_CREAT | O_EXCL, 0640), "open");
    R(write(fd, "0123456789", 10), "write");
    R(lseek(fd, 2, SEEK_SET), "lseek");
    R(read(fd, b, 3), "read");
    TEXT(b, 3, "bytes");
    R(pread(fd, b, 64, 5), "pread");
    R(pread(fd, b, 64, 50), "pread-beyond");
    R(pread(fd, b, 64, -1), "pread-negative");
    R(pwrite(fd, "ab", 2, 1), "pwrite");
    R(lseek(fd, 0, SEEK_CUR), "position");
    struct iovec parts[2] = {{b, 3}, {b + 3, 60}};
    R(preadv(fd, parts, 2, 0), "preadv");
    TEXT(b, 10, "preadv.bytes");
    R(preadv2(fd, parts, 2, -1, 0), "preadv2");
    R(preadv2(fd, parts, 2, 0, RWF_NOWAIT) >= -1, "preadv2-nowait");
    R(pwritev(fd, parts, 1, 20), "pwritev");
    R(lseek(fd, 0, SEEK_END), "end");
    R(fsync(fd), "fsync");
    R(fdatasync(fd), "fdatasync");
    R(ftruncate(fd, 4), "ftruncate");
    R(read(fd, b, 64), "read-at-end");
    R(close(fd), "close");
    R(open("file", O_WRONLY | O_CREAT | O_EXCL, 0640), "exists");
    unlink("file");
    gone();
}

CASE(opening) {
    in_a_place();
    umask(027);
    R(open("none", O_RDONLY), "missing");
    R(close((int)R(creat("file", 0666), "creat")), "creat.close");
    struct stat about;
    NEED(stat("file", &about) == 0);
    R(about.st_mode & 07777, "mode");
    R(open(".", O_WRONLY), "directory");
    R(open("file/x", O_RDONLY), "not-a-directory");
    R(open("file", O_RDONLY | O_DIRECTORY), "wants-directory");
    NEED(symlink("file", "link") == 0);
    R(open("link", O_RDONLY | O_NOFOLLOW), "link");
    int directory = open(".", O_RDONLY | O_DIRECTORY);
    int fd = (int)R(openat(directory, "file", O_RDONLY | O_CLOEXEC), "openat");
    R(fcntl(fd, F_GETFD), "openat.cloexec");
    R(write(fd, "x", 1), "read-only");
    close(fd);
    fd = open("file", O_WRONLY | O_APPEND);
    R(read(fd, b, 1), "write-only");
    R(write(fd, "abc", 3), "append");
    R(lseek(fd, 0, SEEK_SET), "append.lseek");
    R(write(fd, "def", 3), "append-again");
    R(lseek(fd, 0, SEEK_CUR), "append.position");
    close(fd);
    fd = open("file", O_RDWR | O_TRUNC);
    R(lseek(fd, 0, SEEK_END), "truncated");
    R(openat(fd, "x", O_RDONLY), "openat-file");
    R(openat(499, "x", O_RDONLY), "openat-closed");
    R(open64("file", O_RDONLY) >= 0, "open64");
    int unnamed = open(".", O_TMPFILE | O_RDWR, 0600);
    R(unnamed >= 0 ? write(unnamed, "abc", 3) : 3, "unnamed");
    R(open((char *)8, O_RDONLY), "bad-memory");
    unlink("file"), unlink("link");
    gone();
}

DEED(open_to_read, open(d->bytes, O_RDONLY))
CASE(fifo) {
    in_a_place();
    NEED(mkfifo("fifo", 0600) == 0);
    R(open("fifo", O_WRONLY | O_NONBLOCK), "nobody-reads");
    struct deed d = {.bytes = "fifo"};
    start(&d, open_to_read, 0);
    WAITS(&d, "waits");
    int out = open("fifo", O_WRONLY);
    int in = (int)ended(&d);
    YES(in >= 0 && out >= 0, "open");
    R(write(out, "abc", 3), "write");
    R(read(in, b, 64), "read");
    unlink("fifo");
    gone();
}

static void note(int signal) { (void)signal; }
CASE(fifo_interrupted) {
    in_a_place();
    NEED(mkfifo("fifo", 0600) == 0);
    /* The first moved call makes the threads for them. A signal meanwhile would come before it waits. */
    close(open("file", O_CREAT | O_WRONLY, 0600));
    handle(SIGUSR1, note, 0);
    struct deed d = {.bytes = "fifo"};
    start(&d, open_to_read, 0);
    pthread_kill(d.other.thread, SIGUSR1);
    E(&d, "open");
    unlink("fifo");
    unlink("file");
    gone();
}

CASE(pipes) {
    int p[2];
    NEED(pipe(p) == 0);
    struct deed d = {0};
    start(&d, do_read, p[0]);
    WAITS(&d, "waits");
    R(write(p[1], "abc", 3), "write");
    E(&d, "read");
    d = (struct deed){0};
    start(&d, do_read, p[0]);
    close(p[1]);
    E(&d, "end");
    signal(SIGPIPE, SIG_IGN);
    NEED(pipe(p) == 0);
    close(p[0]);
    R(write(p[1], "abc", 3), "broken");
}

CASE(of_the_calling_thread) {
    char path[64], expected[32];
    R(readlink("/proc/thread-self", path, sizeof path) > 0, "readlink");
    int fd = open("/proc/thread-self/stat", O_RDONLY);
    long n = read(fd, b, 63);
    b[n > 0 ? n : 0] = 0;
    snprintf(expected, sizeof expected, "%d ", (int)syscall(SYS_gettid));
    YES(strncmp(b, expected, strlen(expected)) == 0, "stat");
    fd = open("/proc/self/status", O_RDONLY);
    static char status[8192];
    n = read(fd, status, sizeof status - 1);
    snprintf(expected, sizeof expected, "\nPid:\t%d\n", (int)getpid());
    YES(strstr(status, expected) != NULL, "status");
}

/* What the kernel keeps for the thread that writes: a worker would write it for itself, and may
   not. */
CASE(label_of_the_calling_thread) {
    int fd = open("/proc/self/attr/current", O_WRONLY);
    YES(fd >= 0, "open");
    R(write(fd, "x", 1), "current");
    fd = open("/proc/self/attr/exec", O_WRONLY);
    R(write(fd, "x", 1), "exec");
}

/* A number that the library takes for a file's is a pipe's by now: a thread that reads from it
   waits, and others do not. */
CASE(no_file_any_more) {
    int p[2], sv[2], fd = scratch();
    R(write(fd, "x", 1), "file");
    NEED(pipe(p) == 0 && unseen(SYS_dup2, p[0], fd, 0, 0) == fd);
    unix_pair(SOCK_STREAM, sv);
    struct deed d = {0};
    start(&d, do_read, fd);
    WAITS(&d, "waits");
    for (int i = 0; i < 2; i++) {
        R(write(sv[i], "abc", 3), "%d.write", i);
        R(read(sv[1 - i], b, 8), "%d.read", i);
    }
    handle(SIGUSR1, note, 0);
    pthread_kill(d.other.thread, SIGUSR1);
    E(&d, "interrupted");
    d = (struct deed){0};
    start(&d, do_read, fd);
    NEED(write(p[1], "abc", 3) == 3);
    E(&d, "read");
}

CASE(other_kinds) {
    uint64_t value = 5;
    int fd = eventfd(0, EFD_NONBLOCK);
    R(read(fd, &value, 8), "event-empty");
    R(write(fd, &(uint64_t){3}, 8), "event-write");
    R(read(fd, &value, 8), "event-read");
    R(value, "event-value");
    R(write(fd, &value, 4), "event-short");
    fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec when = {.it_value = {0, 20000000}};
    timerfd_settime(fd, 0, &when, NULL);
    R(read(fd, &value, 8), "timer");
    R(value, "timer-value");
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    fd = signalfd(-1, &one, SFD_NONBLOCK);
    struct signalfd_siginfo about;
    R(read(fd, &about, sizeof about), "signal-none");
    raise(SIGUSR2);
    R(read(fd, &about, sizeof about), "signal");
    YES(about.ssi_signo == SIGUSR2 && about.ssi_pid == (uint32_t)getpid(), "signal-value");
    fd = open("/dev/null", O_RDWR);
    R(write(fd, b, 64), "null-write");
    R(read(fd, b, 64), "null-read");
    fd = open("/dev/full", O_WRONLY);
    R(write(fd, b, 1), "full");
}

static volatile int sized;
static void too_large(int signal) {
    (void)signal;
    sized = (int)syscall(SYS_gettid);
}
CASE(size_limit) {
    handle(SIGXFSZ, too_large, 0);
    int fd = scratch();
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, before.rlim_max});
    long below = pwrite(fd, b, 64, 0), part = pwrite(fd, b, 64, 64), beyond = pwrite(fd, b, 64, 100);
    int error = errno;
    // What is printed goes to a file as well.
    setrlimit(RLIMIT_FSIZE, &before);
    R(below, "below");
    R(part, "part");
    YES(beyond == -1 && error == EFBIG, "beyond");
    YES(sized == (int)syscall(SYS_gettid), "signal-here");
}

static int many_files(void *argument) {
    long *wrong = argument;
    for (int i = 0; i < 100; i++) {
        int fd = open("/dev/zero", O_RDONLY);
        char c = 1;
        *wrong += read(fd, &c, 1) != 1 || c != 0 || close(fd) != 0;
    }
    return 0;
}
CASE(in_threads) {
    struct other others[4];
    long wrong[4] = {0};
    for (int i = 0; i < 4; i++) begin(&others[i], many_files, &wrong[i]);
    for (int i = 0; i < 4; i++) R((finish(&others[i]), wrong[i]), "%d", i);
}
