/* The program that `manycore demo` looks at: a cache server as one finds them, with a lock that is
 * held too long.
 *
 *     server SECONDS WORKERS [outside]
 *
 * WORKERS threads answer requests, each for a batch of keys, from one table under one lock,
 * `cache_lock`. The table's checks of its values are done under the lock; with `outside`, behind
 * it: the repair that a profile suggests. A second lock, `totals_lock`, is held for a moment per
 * batch. The load comes from a process of its own, which keeps one request in flight on each
 * connection. After SECONDS the server prints how many batches it answered a second.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, BUCKETS = 4096, KEYS = 8192, VALUE_BYTES = 1024, WORKERS_MAX = 256 };

struct request {
    uint32_t keys[BATCH];
};

struct reply {
    uint64_t check[BATCH];
};

struct entry {
    struct entry *next;
    uint32_t key;
    uint64_t uses;
    unsigned char value[VALUE_BYTES];
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *buckets[BUCKETS];

static pthread_mutex_t totals_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t batches, bytes;
} totals;

static int outside;

static void fail(const char *what)
{
    fprintf(stderr, "server: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* FNV-1a, over all of a value. */
static uint64_t checksum(const unsigned char *value)
{
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < VALUE_BYTES; i++)
        hash = (hash ^ value[i]) * 1099511628211u;
    return hash;
}

static struct entry *find(uint32_t key)
{
    for (struct entry *entry = buckets[key % BUCKETS]; entry; entry = entry->next)
        if (entry->key == key)
            return entry;
    return NULL;
}

static void fill(void)
{
    for (uint32_t key = 0; key < KEYS; key++) {
        struct entry *entry = malloc(sizeof *entry);
        if (!entry)
            fail("no memory");
        entry->key = key;
        entry->uses = 0;
        memset(entry->value, (int)(key * 31 + 7), VALUE_BYTES);
        entry->next = buckets[key % BUCKETS];
        buckets[key % BUCKETS] = entry;
    }
}

static uint64_t look_up(uint32_t key)
{
    unsigned char copy[VALUE_BYTES];
    uint64_t check = 0;
    pthread_mutex_lock(&cache_lock);
    struct entry *entry = find(key);
    if (entry) {
        entry->uses++;
        if (outside)
            memcpy(copy, entry->value, VALUE_BYTES);
        else
            check = checksum(entry->value);
    }
    pthread_mutex_unlock(&cache_lock);
    if (entry && outside)
        check = checksum(copy);
    return check;
}

static void *serve(void *argument)
{
    int connection = *(int *)argument;
    struct request request;
    struct reply reply;
    while (recv(connection, &request, sizeof request, MSG_WAITALL) == sizeof request) {
        for (int i = 0; i < BATCH; i++)
            reply.check[i] = look_up(request.keys[i]);
        pthread_mutex_lock(&totals_lock);
        totals.batches++;
        totals.bytes += BATCH * VALUE_BYTES;
        pthread_mutex_unlock(&totals_lock);
        if (send(connection, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply)
            break;
    }
    return NULL;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void ask(int connection, uint64_t *state)
{
    struct request request;
    for (int i = 0; i < BATCH; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        request.keys[i] = (*state >> 33) % KEYS;
    }
    if (send(connection, &request, sizeof request, MSG_NOSIGNAL) != sizeof request)
        _exit(1);
}

/* The load: no threads, no locks. */
static void load(struct pollfd *connections, int count, double seconds)
{
    uint64_t state = 42;
    struct reply reply;
    for (int i = 0; i < count; i++)
        ask(connections[i].fd, &state);
    double end = now() + seconds;
    while (now() < end) {
        if (poll(connections, count, 100) < 0)
            _exit(1);
        for (int i = 0; i < count; i++) {
            if (!(connections[i].revents & POLLIN))
                continue;
            if (recv(connections[i].fd, &reply, sizeof reply, MSG_WAITALL) != sizeof reply)
                _exit(1);
            ask(connections[i].fd, &state);
        }
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    static int served[WORKERS_MAX];
    static struct pollfd asked[WORKERS_MAX];
    pthread_t threads[WORKERS_MAX];
    double seconds = argc > 2 ? atof(argv[1]) : 0;
    int workers = argc > 2 ? atoi(argv[2]) : 0;
    outside = argc == 4 && strcmp(argv[3], "outside") == 0;
    if (seconds <= 0 || workers < 1 || workers > WORKERS_MAX || (argc == 4 && !outside) || argc > 4) {
        fprintf(stderr, "usage: server SECONDS WORKERS [outside]\n");
        return 2;
    }
    fill();
    for (int i = 0; i < workers; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
            fail("no connection");
        served[i] = ends[0];
        asked[i] = (struct pollfd){.fd = ends[1], .events = POLLIN};
    }
    pid_t parent = getpid();
    pid_t client = fork();
    if (client < 0)
        fail("no load");
    if (client == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        for (int i = 0; i < workers; i++)
            close(served[i]);
        load(asked, workers, seconds);
    }
    double start = now();
    for (int i = 0; i < workers; i++) {
        close(asked[i].fd);
        if (pthread_create(&threads[i], NULL, serve, &served[i]) != 0)
            fail("no thread");
    }
    for (int i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    double took = now() - start;
    int status;
    if (waitpid(client, &status, 0) != client || status != 0) {
        fprintf(stderr, "server: the load failed\n");
        return 1;
    }
    printf("%.0f batches/s\n", totals.batches / took);
    return 0;
}
