/* Threads that do with locks what they are told to, and say what that was: by their own clocks,
 * around and inside of it.
 *
 * Prints a name and numbers in each line; `main` says which. Exits with 77 where there is one CPU
 * only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    WAITERS = 4,
    ROUNDS = 300,
    STEADY = 12000,  /* holds of `steady` */
    STAY = 500,      /* how many of them on one CPU */
    READS = 3000,
    WRITES = 1000,
    CONDITIONS = 40, /* waits that are signalled */
    TIMEOUTS = 15,
    SPINS = 400,
    DOWN = 70,
    UP = 30,
};

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, steady = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t timed = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t north = PTHREAD_MUTEX_INITIALIZER, south = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t book = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t hot;
static pthread_barrier_t together;
static volatile int tids[WAITERS], rung, spinning;
static int cpus[2];
static long beginning;

static long now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void busy(long ns)
{
    for (long end = now(CLOCK_MONOTONIC) + ns; now(CLOCK_MONOTONIC) < end;)
        ;
}

static int order(const void *a, const void *b)
{
    long one = *(const long *)a, other = *(const long *)b;
    return (one > other) - (one < other);
}

static void by_size(long *all, int count) { qsort(all, (size_t)count, sizeof(*all), order); }

static void stay_on(int cpu)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(cpu, &here);
    sched_setaffinity(0, sizeof(here), &here);
}

/* --- waits: the main thread has the gate until all waiters sleep for it --- */

static long waits[WAITERS][ROUNDS], cpu_waits[WAITERS];

__attribute__((noinline)) void wait_for_gate(void)
{
    pthread_mutex_lock(&gate);
    // SAFETY: no instruction: the call before it stays one, with this frame above it.
    __asm__ volatile("");
}
__attribute__((noinline)) void hold_long(void)
{
    pthread_mutex_lock(&gate);
    // SAFETY: no instruction: the call before it stays one, with this frame above it.
    __asm__ volatile("");
}
__attribute__((noinline)) void hold_short(void)
{
    pthread_mutex_lock(&gate);
    // SAFETY: no instruction: the call before it stays one, with this frame above it.
    __asm__ volatile("");
}

static void *waiter(void *argument)
{
    long number = (long)argument;
    tids[number] = syscall(SYS_gettid);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&together);
        long cpu = now(CLOCK_THREAD_CPUTIME_ID), before = now(CLOCK_MONOTONIC);
        wait_for_gate();
        waits[number][round] = now(CLOCK_MONOTONIC) - before;
        cpu_waits[number] += now(CLOCK_THREAD_CPUTIME_ID) - cpu;
        pthread_mutex_unlock(&gate);
        pthread_barrier_wait(&together);
    }
    busy(20000000);
    printf("waiter %d %ld\n", tids[number], now(CLOCK_THREAD_CPUTIME_ID));
    return NULL;
}

static void await_sleep(int tid)
{
    char path[64];
    long call, place;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    for (int looks = 0; looks < 100000; looks++) {
        FILE *file = fopen(path, "r");
        if (!file)
            exit(90);
        int found = fscanf(file, "%ld %li", &call, &place);
        fclose(file);
        if (found == 2 && call == SYS_futex && place >= (long)&gate && place < (long)(&gate + 1))
            return;
        usleep(50);
    }
    exit(91);
}

static void wait_in_queues(void)
{
    pthread_t threads[WAITERS];
    long by_long = 0, by_short = 0, all = 0, cpu = 0, most = 0;
    long queue_min = 0, queue_max = 0, queue_early = 0, queue_late = 0;
    double squares_long = 0, squares_short = 0;
    static long sorted[WAITERS * ROUNDS];
    pthread_barrier_init(&together, NULL, WAITERS + 1);
    for (long i = 0; i < WAITERS; i++)
        pthread_create(&threads[i], NULL, waiter, (void *)i);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2)
            hold_long();
        else
            hold_short();
        long begun = now(CLOCK_MONOTONIC);
        pthread_barrier_wait(&together);
        for (int i = 0; i < WAITERS; i++)
            await_sleep(tids[i]);
        long asleep = now(CLOCK_MONOTONIC);
        usleep(round % 2 ? 3000 : 1000);
        /* One queue is longer than all others. */
        if (round == ROUNDS / 2)
            usleep(60000);
        /* The queue was there before this, and is gone at the barrier's end: when else, the
           scheduler knows. */
        long lasted = now(CLOCK_MONOTONIC) - asleep;
        pthread_mutex_unlock(&gate);
        pthread_barrier_wait(&together);
        long at_most = now(CLOCK_MONOTONIC) - begun;
        if (lasted > queue_min) {
            queue_min = lasted;
            queue_early = begun - beginning;
            queue_late = asleep - beginning;
        }
        if (at_most > queue_max)
            queue_max = at_most;
    }
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WAITERS; i++) {
        long sum = 0;
        for (int round = 0; round < ROUNDS; round++) {
            long wait = waits[i][round];
            sum += wait;
            *(round % 2 ? &by_long : &by_short) += wait;
            *(round % 2 ? &squares_long : &squares_short) += (double)wait * wait;
            if (wait > most)
                most = wait;
            sorted[i * ROUNDS + round] = wait;
        }
        printf("waits %d %ld\n", tids[i], sum);
        all += sum;
        cpu += cpu_waits[i];
    }
    by_size(sorted, WAITERS * ROUNDS);
    printf("gate %ld %ld %ld %ld\n", all, sorted[WAITERS * ROUNDS * 99 / 100], most, cpu);
    printf("holders %ld %ld %.0f %.0f\n", by_long, by_short, squares_long, squares_short);
    printf("queue %ld %ld %ld %ld\n", queue_min, queue_max, queue_early, queue_late);
}

/* --- holds, by one thread that goes from one CPU to the other --- */

static void hold_steadily(void)
{
    static long holds[STEADY];
    long total = 0;
    double squares = 0;
    for (int hold = 0; hold < STEADY; hold++) {
        if (hold % STAY == 0)
            stay_on(cpus[hold / STAY % 2]);
        pthread_mutex_lock(&steady);
        long before = now(CLOCK_MONOTONIC);
        busy(hold % 4 ? 10000 : 30000);
        long held = now(CLOCK_MONOTONIC) - before;
        pthread_mutex_unlock(&steady);
        total += held;
        squares += (double)held * held;
        holds[hold] = held;
    }
    by_size(holds, STEADY);
    printf("steady %ld %ld %.0f\n", total, holds[STEADY - 1], squares);
    printf("quantiles %ld %ld\n", holds[STEADY * 95 / 100], holds[STEADY - STEADY / 4000]);
}

static void read_and_write(void)
{
    long total = 0;
    double squares = 0;
    for (int turn = 0; turn < READS + WRITES; turn++) {
        int writes = turn % ((READS + WRITES) / WRITES) == 0;
        if (writes)
            pthread_rwlock_wrlock(&book);
        else
            pthread_rwlock_rdlock(&book);
        long before = now(CLOCK_MONOTONIC);
        busy(writes ? 40000 : 20000);
        long held = now(CLOCK_MONOTONIC) - before;
        pthread_rwlock_unlock(&book);
        total += held;
        squares += (double)held * held;
    }
    printf("book %ld %.0f\n", total, squares);
}

/* --- conditions, and waits that end by their deadline --- */

static struct timespec in(long us)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += us * 1000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void *ringer(void *unused)
{
    for (int ring = 0; ring < CONDITIONS; ring++) {
        pthread_barrier_wait(&together);
        /* One wait is longer than all others, whatever the scheduler adds between two clocks. */
        usleep(ring == CONDITIONS / 2 ? 200000 : 4000);
        pthread_mutex_lock(&guard);
        rung = 1;
        pthread_cond_signal(&bell);
        pthread_mutex_unlock(&guard);
    }
    pthread_mutex_lock(&timed);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    pthread_mutex_unlock(&timed);
    return unused;
}

static void wait_for_events(void)
{
    pthread_t thread;
    static long all[CONDITIONS + TIMEOUTS];
    long waited = 0, late = 0, latest = 0;
    int count = 0;
    pthread_barrier_init(&together, NULL, 2);
    pthread_create(&thread, NULL, ringer, NULL);
    for (int ring = 0; ring < CONDITIONS; ring++) {
        pthread_mutex_lock(&guard);
        pthread_barrier_wait(&together);
        while (!rung) {
            long before = now(CLOCK_MONOTONIC);
            pthread_cond_wait(&bell, &guard);
            if (count == CONDITIONS)
                exit(95); /* more wake-ups than rings */
            long wait = now(CLOCK_MONOTONIC) - before;
            waited += wait;
            all[count++] = wait;
        }
        rung = 0;
        pthread_mutex_unlock(&guard);
    }
    for (int at = 0; at < TIMEOUTS; at++) {
        struct timespec end = in(3000);
        pthread_mutex_lock(&guard);
        long before = now(CLOCK_MONOTONIC);
        if (pthread_cond_timedwait(&bell, &guard, &end) != ETIMEDOUT)
            exit(92);
        long wait = now(CLOCK_MONOTONIC) - before;
        waited += wait;
        all[count++] = wait;
        pthread_mutex_unlock(&guard);
    }
    by_size(all, count);
    printf("bell %ld %ld %ld\n", waited, all[count - 1], all[count * 99 / 100]);
    pthread_barrier_wait(&together);
    for (int at = 0; at < TIMEOUTS; at++) {
        /* Here, too, one is longer than all others. */
        struct timespec end = in(at == TIMEOUTS / 2 ? 200000 : 3000);
        long before = now(CLOCK_MONOTONIC);
        if (pthread_mutex_timedlock(&timed, &end) != ETIMEDOUT)
            exit(93);
        long wait = now(CLOCK_MONOTONIC) - before;
        late += wait;
        if (wait > latest)
            latest = wait;
    }
    printf("timed %ld %ld\n", late, latest);
    pthread_barrier_wait(&together);
    pthread_join(thread, NULL);
}

/* --- spinning: one thread has the lock for a while, the other wants it --- */

static void *spinner(void *unused)
{
    static long all[SPINS];
    long cpu = 0, wall = 0, begun = now(CLOCK_MONOTONIC);
    double squares = 0;
    stay_on(cpus[1]);
    for (int round = 0; round < SPINS; round++) {
        pthread_barrier_wait(&together);
        long before = now(CLOCK_THREAD_CPUTIME_ID), start = now(CLOCK_MONOTONIC);
        spinning = 1;
        pthread_spin_lock(&hot);
        long took = now(CLOCK_THREAD_CPUTIME_ID) - before;
        all[round] = now(CLOCK_MONOTONIC) - start;
        wall += all[round];
        cpu += took;
        squares += (double)took * took;
        pthread_spin_unlock(&hot);
        pthread_barrier_wait(&together);
    }
    by_size(all, SPINS);
    printf("hot %ld %ld %.0f\n", wall, cpu, squares);
    printf("spins %ld %ld\n", all[SPINS * 98 / 100], all[SPINS * 99 / 100]);
    printf("when %ld %ld\n", begun - beginning, now(CLOCK_MONOTONIC) - beginning);
    return unused;
}

static void spin(void)
{
    pthread_t thread;
    pthread_spin_init(&hot, 0);
    pthread_barrier_init(&together, NULL, 2);
    pthread_create(&thread, NULL, spinner, NULL);
    stay_on(cpus[0]);
    for (int round = 0; round < SPINS; round++) {
        pthread_spin_lock(&hot);
        spinning = 0;
        pthread_barrier_wait(&together);
        while (!spinning)
            ;
        busy(1000000);
        pthread_spin_unlock(&hot);
        pthread_barrier_wait(&together);
    }
    pthread_join(thread, NULL);
}

/* --- two locks in both orders, one after the other --- */

__attribute__((noinline)) void down(void)
{
    pthread_mutex_lock(&north);
    pthread_mutex_lock(&south);
    pthread_mutex_unlock(&south);
    pthread_mutex_unlock(&north);
}
__attribute__((noinline)) void up(void)
{
    pthread_mutex_lock(&south);
    pthread_mutex_lock(&north);
    pthread_mutex_unlock(&north);
    pthread_mutex_unlock(&south);
}
static void *climb(void *unused)
{
    for (int step = 0; step < UP; step++)
        up();
    return unused;
}

/* --- CPU time outside of locks: of the program, and of the kernel --- */

static void work(void)
{
    static char zeros[1 << 20];
    busy(300000000);
    FILE *source = fopen("/dev/zero", "r");
    setvbuf(source, NULL, _IONBF, 0);
    for (long end = now(CLOCK_THREAD_CPUTIME_ID) + 300000000; now(CLOCK_THREAD_CPUTIME_ID) < end;)
        if (fread(zeros, sizeof zeros, 1, source) != 1)
            exit(94);
    fclose(source);
}

static double seconds(struct timeval time) { return time.tv_sec + time.tv_usec / 1e6; }

int main(void)
{
    pthread_t thread;
    struct rusage used;
    cpu_set_t allowed;
    int found = 0;
    beginning = now(CLOCK_MONOTONIC);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            cpus[found++] = cpu;
    if (found < 2)
        return 77;
    wait_in_queues();
    hold_steadily();
    read_and_write();
    sched_setaffinity(0, sizeof allowed, &allowed);
    wait_for_events();
    spin();
    sched_setaffinity(0, sizeof allowed, &allowed);
    for (int step = 0; step < DOWN; step++)
        down();
    pthread_create(&thread, NULL, climb, NULL);
    pthread_join(thread, NULL);
    work();
    getrusage(RUSAGE_SELF, &used);
    printf("cpu %f %f\n", seconds(used.ru_utime), seconds(used.ru_stime));
    return 0;
}
