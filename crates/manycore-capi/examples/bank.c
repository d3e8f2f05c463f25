/*
 * A bank whose process is killed again and again: after each time all the money is there, and every
 * transfer that a teller was told of. Each account is an object; a list of the program's own has
 * the last transfers.
 *
 *     cc bank.c -o bank $(pkg-config --cflags --libs manycore) -pthread && ./bank
 */
#include <manycore/timestone.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ACCOUNTS 16
#define EACH 100
#define TELLERS 3
#define ROUNDS 5
#define KEPT 8

struct bank {
    uint64_t transfers[TELLERS]; /* how many each teller has made */
    uint64_t first;              /* the last transfer, or 0 */
};

struct transfer {
    uint64_t next;
    uint32_t from, to, sum, is_last;
};

static ts_store_t *store;
static const ts_map_t *balances;
static uint64_t bank;
static int to_parent;

static void check(manycore_status_t status, const char *doing)
{
    if (status != MANYCORE_OK) {
        fprintf(stderr, "%s: %s (%s)\n", doing, manycore_strerror(status), ts_message());
        exit(1);
    }
}

static void open_bank(const char *directory)
{
    ts_config_t config;
    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.journal_bytes = 1 << 20;
    config.heap_bytes = 64 << 20;
    config.ring_bytes = 32 << 10;
    check(ts_open(directory, &config, &store), "open");
    check(ts_map(store, "balances", sizeof(uint32_t), sizeof(int64_t), &balances), "map");
    check(ts_root(store, "bank", sizeof(struct bank), &bank), "root");
}

/* A transfer within a transaction: MANYCORE_CONFLICT if another teller was faster. */
static manycore_status_t change(ts_member_t *me, uint32_t teller, uint32_t from, uint32_t to)
{
    int64_t balance = 0, sum;
    uint64_t new, id;
    struct bank *all;
    const void *seen;
    struct transfer transfer;
    manycore_status_t status;
    if ((status = ts_map_get(me, balances, &from, &balance)) != MANYCORE_OK)
        return status;
    sum = balance < 7 ? balance : 7;
    balance -= sum;
    if ((status = ts_map_put(me, balances, &from, &balance)) != MANYCORE_OK)
        return status;
    if ((status = ts_map_get(me, balances, &to, &balance)) != MANYCORE_OK)
        return status;
    balance += sum;
    if ((status = ts_map_put(me, balances, &to, &balance)) != MANYCORE_OK)
        return status;
    if ((status = ts_lock(me, bank, (void **)&all)) != MANYCORE_OK)
        return status;
    all->transfers[teller]++;
    transfer.next = all->first;
    transfer.from = from;
    transfer.to = to;
    transfer.sum = (uint32_t)sum;
    transfer.is_last = (all->transfers[teller] % KEPT) == 0;
    if (transfer.is_last) { /* the list begins anew, and the old transfers end */
        for (id = all->first; id != 0; id = ((const struct transfer *)seen)->next) {
            if ((status = ts_deref(me, id, &seen)) != MANYCORE_OK || (status = ts_free(me, id)) != MANYCORE_OK)
                return status;
        }
        transfer.next = 0;
    }
    if ((status = ts_alloc(me, &transfer, sizeof transfer, &new)) != MANYCORE_OK)
        return status;
    ts_assign(&all->first, new);
    return MANYCORE_OK;
}

static void *teller(void *data)
{
    uint32_t number = (uint32_t)(uintptr_t)data, round;
    unsigned seed = number + (unsigned)getpid();
    ts_member_t *me;
    check(ts_register(store, &me), "register");
    for (round = 0;; round++) {
        manycore_status_t status;
        seed = seed * 1664525 + 1013904223;
        do {
            check(ts_begin(me, TS_SNAPSHOT), "begin");
            status = change(me, number, seed >> 28, seed >> 20 & 15);
            if (status == MANYCORE_OK)
                status = ts_commit(me, TS_DURABLE, NULL);
            else
                check(ts_abort(me), "abort");
        } while (status == MANYCORE_CONFLICT);
        check(status, "transfer");
        if (write(to_parent, &number, sizeof number) != sizeof number)
            exit(1);
    }
    return NULL;
}

/* The process that is killed. */
static void work(const char *directory)
{
    pthread_t threads[TELLERS];
    uintptr_t number;
    open_bank(directory);
    for (number = 0; number < TELLERS; number++)
        pthread_create(&threads[number], NULL, teller, (void *)number);
    for (number = 0; number < TELLERS; number++)
        pthread_join(threads[number], NULL);
}

static void fill(const char *directory)
{
    ts_member_t *me;
    uint32_t account;
    int64_t each = EACH;
    open_bank(directory);
    check(ts_register(store, &me), "register");
    check(ts_begin(me, TS_SNAPSHOT), "begin");
    for (account = 0; account < ACCOUNTS; account++)
        check(ts_map_put(me, balances, &account, &each), "put");
    check(ts_commit(me, TS_DURABLE, NULL), "commit");
    check(ts_unregister(me), "unregister");
    check(ts_close(store), "close");
}

static void add(void *sum, const void *key, const void *value)
{
    int64_t balance;
    (void)key;
    memcpy(&balance, value, sizeof balance);
    *(int64_t *)sum += balance;
}

/* Opens what the killed process has left: the money is all there, and at least `told` transfers. */
static void examine(const char *directory, const uint64_t *told)
{
    ts_member_t *me;
    const void *seen;
    int64_t sum = 0;
    uint64_t id;
    int number, kept = 0;
    open_bank(directory);
    check(ts_register(store, &me), "register");
    check(ts_begin(me, TS_READ), "begin");
    check(ts_map_each(me, balances, add, &sum), "each");
    check(ts_deref(me, bank, &seen), "deref");
    for (number = 0; number < TELLERS; number++)
        if (((const struct bank *)seen)->transfers[number] < told[number])
            sum = -1;
    for (id = ((const struct bank *)seen)->first; id != 0; id = ((const struct transfer *)seen)->next) {
        check(ts_deref(me, id, &seen), "deref");
        kept++;
    }
    check(ts_commit(me, TS_DURABLE, NULL), "commit");
    if (sum != ACCOUNTS * EACH || kept > TELLERS * KEPT) {
        fprintf(stderr, "lost: %ld there of %d, %d transfers\n", (long)sum, ACCOUNTS * EACH, kept);
        exit(1);
    }
    check(ts_unregister(me), "unregister");
    check(ts_close(store), "close");
}

static void clean(const char *directory)
{
    static const char *const names[] = {"store", "journal", "image.0", "image.1", "lock"};
    char path[256];
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

int main(void)
{
    char directory[] = "/tmp/bank-XXXXXX";
    uint64_t told[TELLERS] = {0};
    int round;
    if (mkdtemp(directory) == NULL)
        return 1;
    fill(directory);
    for (round = 0; round < ROUNDS; round++) {
        int pipe_ends[2], heard = 0;
        uint32_t number;
        pid_t child;
        if (pipe(pipe_ends) != 0 || (child = fork()) < 0)
            return 1;
        if (child == 0) {
            close(pipe_ends[0]);
            to_parent = pipe_ends[1];
            work(directory);
            _exit(1);
        }
        close(pipe_ends[1]);
        while (heard < 20 + 10 * round && read(pipe_ends[0], &number, sizeof number) == sizeof number) {
            told[number]++;
            heard++;
        }
        kill(child, SIGKILL);
        /* what it had said before */
        while (read(pipe_ends[0], &number, sizeof number) == sizeof number)
            told[number]++;
        close(pipe_ends[0]);
        waitpid(child, NULL, 0);
        if (heard == 0)
            return 1;
        examine(directory, told);
    }
    printf("%d kills, %lu transfers told of: all there\n", ROUNDS, (unsigned long)(told[0] + told[1] + told[2]));
    clean(directory);
    return 0;
}
