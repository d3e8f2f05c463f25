/* What the kernel ties to the calling thread: who it is, where it is, what it may do. */
#define PROGRAM "ties"
#include "call.h"
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

static int sv[2];
static char b[16];

/* Runs a body in a thread of its own, as the ties of one thread are not those of others. */
static int run_body(void *body) {
    ((void (*)(void))body)();
    return 0;
}
static void apart(void (*body)(void)) {
    struct other other;
    begin(&other, run_body, (void *)body);
    finish(&other);
}

static struct sockaddr_un secret;
static char place[] = "/tmp/case-dir-XXXXXX";
static int connects(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int result = connect(fd, (struct sockaddr *)&secret, sizeof secret), error = errno;
    close(fd);
    errno = error == EINPROGRESS ? UNTOUCHED : error;
    return result;
}
static void as_nobody_for_files(void) {
    setfsuid(65534);
    R(connects(), "nobody.connect");
    R(open(secret.sun_path + 0, O_RDONLY), "nobody.open");
    setfsuid(0);
    R(connects(), "root-again.connect");
}
static void as_nobody_raw(void) {
    if (syscall(SYS_setresuid, 65534, 65534, 65534) != 0) return;
    R(connects(), "raw.connect");
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = loopback(81);
    R(bind(fd, (struct sockaddr *)&a, sizeof a), "raw.low-port");
}

CASE(credentials) {
    NEED(mkdtemp(place));
    secret.sun_family = AF_UNIX;
    snprintf(secret.sun_path, sizeof secret.sun_path, "%s/s", place);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    NEED(bind(fd, (struct sockaddr *)&secret, sizeof secret) == 0 && listen(fd, 10) == 0 && chmod(secret.sun_path, 0600) == 0);
    R(connects(), "connect");
    apart(as_nobody_for_files);
    R(connects(), "after.connect");
    apart(as_nobody_raw);
    R(connects(), "after-raw.connect");
    unlink(secret.sun_path), rmdir(place);
}

/* Who the kernel says sent the next byte. */
static void sender(const char *name) {
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr aligned;
    } control;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    R(recvmsg(sv[1], &m, 0), "%s.received", name);
    struct ucred from = {0};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_type == SCM_CREDENTIALS) memcpy(&from, CMSG_DATA(c), sizeof from);
    YES(from.pid == getpid(), "%s.process", name);
    R(from.uid, "%s.user", name);
    R(from.gid, "%s.group", name);
}

/* Each way to change who a process is, in a child of its own that has moved calls before. */
static int by_setuid(void) { return setuid(65534); }
static int by_seteuid(void) { return seteuid(65534); }
static int by_setreuid(void) { return setreuid(65534, 65534); }
static int by_setgid(void) { return setgid(65534); }
static int by_setegid(void) { return setegid(65534); }
static int by_setregid(void) { return setregid(65534, 65534); }
static int by_setresgid(void) { return setresgid(65534, 65534, 65534); }
static int by_setresuid(void) { return setresuid(65534, 65534, 65534); }

CASE(senders) {
    static const struct {
        const char *name;
        int (*change)(void);
    } ways[] = {
        {"setuid", by_setuid},     {"seteuid", by_seteuid},   {"setreuid", by_setreuid},   {"setresuid", by_setresuid},
        {"setgid", by_setgid},     {"setegid", by_setegid},   {"setregid", by_setregid},   {"setresgid", by_setresgid},
    };
    if (geteuid() != 0) {
        SAID("not root", "setuid");
        return;
    }
    int on = 1;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        unix_pair(SOCK_STREAM, sv);
        NEED(setsockopt(sv[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
        pid_t child = fork();
        if (child == 0) {
            char name[64];
            for (int n = 0; n < 4; n++) NEED(send(sv[0], "x", 1, 0) == 1 && recv(sv[1], b, 1, 0) == 1);
            NEED(ways[i].change() == 0);
            R(write(sv[0], "x", 1), "%s.write", ways[i].name);
            snprintf(name, sizeof name, "%s.by-write", ways[i].name);
            sender(name);
            R(send(sv[0], "x", 1, 0), "%s.send", ways[i].name);
            snprintf(name, sizeof name, "%s.by-send", ways[i].name);
            sender(name);
            fflush(NULL);
            _exit(0);
        }
        STATUS(child, "%s", ways[i].name);
        both_closed(sv);
    }
}

CASE(of_all_threads) {
    if (geteuid() != 0) {
        SAID("not root", "setresuid");
        return;
    }
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && read(sv[1], b, 1) == 1);
    R(setresgid(65534, 65534, 65534), "setresgid");
    R(setresuid(65534, 65534, 65534), "setresuid");
    R(geteuid(), "geteuid");
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = loopback(81);
    R(bind(fd, (struct sockaddr *)&a, sizeof a), "low-port");
    R(write(sv[0], "abc", 3), "write");
    R(read(sv[1], b, 8), "read");
    struct deed d = {0};
    start(&d, do_recv, sv[1]);
    NEED(write(sv[0], "x", 1) == 1);
    E(&d, "recv");
}

static void without_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    int dgram = socket(AF_INET, SOCK_DGRAM, 0);
    R(syscall(SYS_capset, &header, data), "capset");
    R(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "raw-socket");
    int size = 1 << 26;
    R(setsockopt(dgram, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size), "force");
}
CASE(capabilities) {
    apart(without_capabilities);
    R(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= -1, "others");
}

static void own_network(void) {
    if (unshare(CLONE_NEWNET) != 0) {
        SAID("may not", "unshare");
        return;
    }
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = loopback(9);
    R(connect(fd, (struct sockaddr *)&a, sizeof a), "connect");
    int size = 0;
    socklen_t length = sizeof size;
    R(getsockopt(fd, SOL_SOCKET, SO_TYPE, &size, &length), "option");
    R(write(sv[0], "abc", 3), "old-socket");
}
CASE(network) {
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && read(sv[1], b, 1) == 1);
    apart(own_network);
    int fd = listener(), client = connected_to(fd);
    R(accept(fd, NULL, NULL) >= 0, "others");
    close(client);
}

static void own_table(void) {
    R(unshare(CLONE_FILES), "unshare");
    int own[2];
    unix_pair(SOCK_STREAM, own);
    R(write(own[0], "abc", 3), "here.write");
    R(read(own[1], b, 8), "here.read");
    close(sv[0]);
    R(write(sv[0], "x", 1), "closed-here");
    R(own[0] == sv[0] || own[0] > sv[1], "number");
}
CASE(table_of_descriptors) {
    signal(SIGPIPE, SIG_IGN);
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && read(sv[1], b, 1) == 1);
    apart(own_table);
    R(write(sv[0], "abc", 3), "open-elsewhere");
    R(read(sv[1], b, 8), "read");
    int fresh[2];
    unix_pair(SOCK_STREAM, fresh);
    R(write(fresh[0], "abc", 3), "fresh.write");
    R(read(fresh[1], b, 8), "fresh.read");
}

static void own_directory(void) {
    R(unshare(CLONE_FS), "unshare");
    NEED(chdir(place) == 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "relative"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    R(bind(fd, (struct sockaddr *)&a, sizeof a), "bind");
    R(unlink("relative"), "unlink");
}
CASE(directory) {
    strcpy(place, "/tmp/case-dir-XXXXXX");
    NEED(mkdtemp(place));
    apart(own_directory);
    R(rmdir(place), "rmdir");
}

CASE(shared_directory) {
    strcpy(place, "/tmp/case-dir-XXXXXX");
    NEED(mkdtemp(place));
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && read(sv[1], b, 1) == 1 && chdir(place) == 0);
    umask(077);
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "relative"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    R(bind(fd, (struct sockaddr *)&a, sizeof a), "bind");
    struct stat about = {0};
    R(stat("relative", &about), "stat");
    R(about.st_mode & 0777, "mode");
    unlink("relative");
    NEED(chdir("/") == 0 && rmdir(place) == 0);
}

static void filtered(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    R(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no-new-privileges");
    R(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "filter");
    R(send(sv[0], "abc", 3, 0), "send");
    R(write(sv[0], "abc", 3), "write");
}
CASE(filter) {
    unix_pair(SOCK_STREAM, sv);
    NEED(send(sv[0], "x", 1, 0) == 1 && read(sv[1], b, 1) == 1);
    apart(filtered);
    R(send(sv[0], "abc", 3, 0), "others");
}

static void filtered_raw(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    NEED(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    R(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "seccomp");
    R(send(sv[0], "abc", 3, 0), "send");
}
CASE(filter_by_seccomp) {
    unix_pair(SOCK_STREAM, sv);
    NEED(send(sv[0], "x", 1, 0) == 1 && read(sv[1], b, 1) == 1);
    apart(filtered_raw);
    R(send(sv[0], "abc", 3, 0), "others");
}

CASE(strict) {
    unix_pair(SOCK_STREAM, sv);
    NEED(send(sv[0], "x", 1, 0) == 1 && read(sv[1], b, 1) == 1);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        long n = write(sv[0], "abc", 3);
        syscall(SYS_exit, n == 3 ? 0 : 1);
    }
    STATUS(child, "child");
    R(recv(sv[1], b, 8, MSG_DONTWAIT), "recv");
    child = fork();
    if (child == 0) {
        long n = send(sv[0], "abc", 3, 0);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        n += write(sv[0], "def", 3);
        syscall(SYS_exit, n == 6 ? 0 : 1);
    }
    STATUS(child, "after-a-call");
    R(recv(sv[1], b, 8, MSG_DONTWAIT), "recv-both");
}

static void without_counter(void) {
    R(prctl(PR_SET_TSC, PR_TSC_SIGSEGV), "taken");
    for (int i = 0; i < 3; i++) {
        R(send(sv[0], "abc", 3, 0), "%d.send", i);
        R(read(sv[1], b, 8), "%d.read", i);
    }
}
CASE(counter) {
    unix_pair(SOCK_STREAM, sv);
    NEED(send(sv[0], "x", 1, 0) == 1 && read(sv[1], b, 1) == 1);
    apart(without_counter);
    R(send(sv[0], "abc", 3, 0), "others");
}

static void in_real_time(void) {
    for (int i = 0; i < 3; i++) {
        R(send(sv[0], "abc", 3, 0), "%d.send", i);
        R(read(sv[1], b, 8), "%d.read", i);
    }
    R(sched_getscheduler(0), "policy");
    // Every other thread is scheduled as threads are: also those that this thread's calls were the
    // first for.
    int others = 0, self = (int)syscall(SYS_gettid);
    DIR *directory = opendir("/proc/self/task");
    NEED(directory);
    for (struct dirent *e; (e = readdir(directory));)
        if (atoi(e->d_name) > 0 && atoi(e->d_name) != self) others += sched_getscheduler(atoi(e->d_name)) != SCHED_OTHER;
    closedir(directory);
    R(others, "others");
}
static void *in_real_time_from_the_start(void *unused) {
    in_real_time();
    return unused;
}
static int changes_itself(void *way) {
    struct sched_param parameters = {.sched_priority = 10};
    if (way) {
        R(sched_setscheduler(0, SCHED_FIFO, &parameters), "sched_setscheduler");
    } else {
        R(pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters), "pthread_setschedparam");
        R(pthread_setschedprio(pthread_self(), 11), "pthread_setschedprio");
        R(sched_setparam(0, &parameters), "sched_setparam");
    }
    in_real_time();
    return 0;
}
static bool may_be_in_real_time(void) {
    pid_t child = fork();
    if (child == 0) {
        struct sched_param parameters = {.sched_priority = 10};
        _exit(sched_setscheduler(0, SCHED_FIFO, &parameters) == 0 ? 0 : 1);
    }
    int status;
    NEED(waitpid(child, &status, 0) == child);
    if (status != 0) SAID("may not", "real-time");
    return status == 0;
}
static void made_in_real_time(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    struct sched_param parameters = {.sched_priority = 10};
    NEED(pthread_attr_init(&attributes) == 0 && pthread_attr_setschedpolicy(&attributes, SCHED_FIFO) == 0);
    NEED(pthread_attr_setschedparam(&attributes, &parameters) == 0);
    NEED(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0);
    NEED(pthread_create(&thread, &attributes, in_real_time_from_the_start, NULL) == 0);
    R(pthread_join(thread, NULL), "join");
}
CASE(real_time_thread) {
    unix_pair(SOCK_STREAM, sv);
    if (may_be_in_real_time()) made_in_real_time();
}
CASE(real_time_thread_beside_workers) {
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && read(sv[1], b, 1) == 1);
    if (may_be_in_real_time()) made_in_real_time();
}
CASE(real_time_later) {
    unix_pair(SOCK_STREAM, sv);
    struct other other;
    if (!may_be_in_real_time()) return;
    begin(&other, changes_itself, NULL);
    finish(&other);
}
CASE(real_time_program) {
    unix_pair(SOCK_STREAM, sv);
    if (may_be_in_real_time()) changes_itself(sv);
}

/* What the kernel does for a process with one thread only, after calls that threads of the
   library's have made. */
static void alone(int (*change)(void), const char *name) {
    unix_pair(SOCK_STREAM, sv);
    for (int i = 0; i < 3; i++) NEED(write(sv[0], "x", 1) == 1 && read(sv[1], b, 1) == 1);
    R(change(), "%s", name);
    R(write(sv[0], "abc", 3), "%s.write", name);
    R(read(sv[1], b, 8), "%s.read", name);
}
static int leaves_users(void) { return unshare(CLONE_NEWUSER); }
static int leaves_users_raw(void) { return (int)syscall(SYS_unshare, CLONE_NEWUSER); }
static int enters_mounts(void) {
    int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    int result = setns(fd, CLONE_NEWNS), error = errno;
    close(fd);
    errno = error;
    return result;
}
/* How many threads there are, as sandboxes ask: by the links of the directory that has them, which
   are two more, or by its entries. */
static int links_of_tasks(void) {
    struct stat about;
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fstatat(proc, "self/task/", &about, 0);
    close(proc);
    return failed ? failed : (int)about.st_nlink;
}
static int links_by_number(void) {
    struct stat about;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", getpid());
    return stat(path, &about) ? -1 : (int)about.st_nlink;
}
static int entries_of_tasks(void) {
    int entries = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks)) entries++;
    if (tasks) closedir(tasks);
    return entries;
}
static int opened_tasks(void) {
    struct stat about;
    int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fstat(tasks, &about);
    close(tasks);
    return failed ? failed : (int)about.st_nlink;
}
CASE(tasks) { alone(links_of_tasks, "links"); }
CASE(tasks_by_number) { alone(links_by_number, "links"); }
CASE(tasks_listed) { alone(entries_of_tasks, "entries"); }
CASE(tasks_opened) { alone(opened_tasks, "links"); }
CASE(own_users) { alone(leaves_users, "unshare"); }
CASE(own_users_by_number) { alone(leaves_users_raw, "syscall"); }
CASE(mounts) { alone(enters_mounts, "setns"); }

/* What the kernel refuses changes nothing. */
CASE(refused) {
    struct sched_param none = {.sched_priority = 1000};
    pthread_attr_t attributes;
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && read(sv[1], b, 1) == 1);
    R(sched_setscheduler(0, SCHED_FIFO, &none), "sched_setscheduler");
    R(sched_setparam(0, &none), "sched_setparam");
    R(pthread_setschedparam(pthread_self(), SCHED_FIFO, &none), "pthread_setschedparam");
    R(pthread_setschedprio(pthread_self(), 1000), "pthread_setschedprio");
    R(prctl(PR_CAPBSET_DROP, 1000, 0, 0, 0), "bounding-set");
    R(prctl(PR_SET_SECCOMP, 1000, 0, 0, 0), "seccomp");
    R(setns(-1, 0), "setns");
    R(unshare(1), "unshare");
    R(close_range(3000, 4000, 1 << 10 | CLOSE_RANGE_UNSHARE), "close_range");
    R(setpriority(1000, 0, 5), "setpriority");
    R(setresuid(-1, -1, -1), "setresuid");
    NEED(pthread_attr_init(&attributes) == 0);
    R(pthread_attr_setschedparam(&attributes, &none), "attributes");
    for (int i = 0; i < 100; i++) NEED(send(sv[0], "x", 1, 0) == 1 && recv(sv[1], b, 1, 0) == 1);
}

/* What a thread writes there is its own: its calls are no other thread's from then on. */
CASE(label) {
    unix_pair(SOCK_STREAM, sv);
    NEED(send(sv[0], "x", 1, 0) == 1 && read(sv[1], b, 1) == 1);
    int fd = open("/proc/thread-self/attr/current", O_RDONLY);
    YES(fd >= 0, "read");
    R(send(sv[0], "abc", 3, 0), "before");
    R(recv(sv[1], b, 8, 0), "before.recv");
    fd = open("/proc/thread-self/attr/current", O_WRONLY | O_CLOEXEC);
    YES(fd >= 0, "write");
    R(sendto(sv[0], "abc", 3, 0, NULL, 0), "after");
    R(recvfrom(sv[1], b, 8, 0, NULL, NULL), "after.recv");
}

CASE(cpu_time) {
    // The library's threads are the process's, as /proc shows; the program's own are counted by it.
    struct rusage own;
    unix_pair(SOCK_STREAM, sv);
    NEED(send(sv[0], "x", 1, 0) == 1 && read(sv[1], b, 1) == 1);
    R(getrusage(RUSAGE_THREAD, &own), "rusage");
    R(getpriority(PRIO_PROCESS, 0), "priority");
    char name[16] = "";
    R(prctl(PR_GET_NAME, name), "name");
    YES(strcmp(name, "exe") == 0 || strlen(name) > 0, "name.value");
}
