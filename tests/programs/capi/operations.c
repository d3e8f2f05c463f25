/* TimeStone: operations, whose calls are in the journal instead of what they have written. Processes
   that end without closing the store leave calls, which the next one to open it makes again. */
#include "expect.h"

#include <manycore/timestone.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEYS 500
#define REFUSED 77

struct pay {
    uint64_t last, sum;
};

/* Of the process that was there first, and of those that call it again. */
static uint64_t clock_now = 1000;
static uint64_t calls;
static ts_member_t *caller;
static const ts_map_t *callers_map;

/* A conflict ends the attempt: ts_call makes another one. */
#define TRY(call)               \
    do {                        \
        int status_ = (call);   \
        if (status_ != 0)       \
            return status_;     \
    } while (0)

static int pay_all(ts_member_t *me, const void *arguments, size_t bytes)
{
    struct pay pay;
    const ts_map_t *accounts;
    uint64_t key, balance, id, root, now = clock_now;
    const void *seen;
    void *object;
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED); /* several threads make calls */
    if (bytes != sizeof pay || (uintptr_t)arguments % 8 != 0)
        return MANYCORE_INVALID;
    memcpy(&pay, arguments, sizeof pay);
    TRY(ts_find_map(me, "accounts", 8, 8, &accounts));
    for (key = 0; key <= pay.last; key++) {
        TRY(ts_map_get(me, accounts, &key, &balance));
        balance += pay.sum;
        TRY(ts_map_put(me, accounts, &key, &balance));
    }
    /* An object that it has made is there for it, too; and the time, as it was. */
    TRY(ts_input(me, &now, sizeof now));
    TRY(ts_find_root(me, "last", 8, &root));
    TRY(ts_alloc(me, &now, sizeof now, &id));
    TRY(ts_deref(me, id, &seen));
    EXPECT(now, *(const uint64_t *)seen);
    TRY(ts_lock(me, id, &object));
    *(uint64_t *)object = now + pay.sum;
    TRY(ts_lock(me, root, &object));
    *(uint64_t *)object = id;
    return pay.sum == REFUSED ? REFUSED : 0;
}

/* What it does hangs on the process. */
static int pays_otherwise(ts_member_t *me, const void *arguments, size_t bytes)
{
    struct pay pay;
    memcpy(&pay, arguments, sizeof pay);
    pay.sum += 1;
    return pay_all(me, &pay, bytes);
}

/* Nothing begins or ends in it, and its caller waits. */
static int mistakes(ts_member_t *me, const void *arguments, size_t bytes)
{
    const ts_map_t *map;
    uint64_t id, key = 0, value;
    EXPECT(1, arguments == NULL || bytes > 0);
    EXPECT(MANYCORE_BUSY, ts_begin(me, TS_SNAPSHOT));
    EXPECT(MANYCORE_BUSY, ts_commit(me, TS_DURABLE, NULL));
    EXPECT(MANYCORE_BUSY, ts_abort(me));
    EXPECT(MANYCORE_BUSY, ts_unregister(me));
    EXPECT(MANYCORE_BUSY, ts_begin(caller, TS_SNAPSHOT));
    EXPECT(MANYCORE_BUSY, ts_abort(caller));
    EXPECT(MANYCORE_BUSY, ts_commit(caller, TS_DURABLE, NULL));
    EXPECT(MANYCORE_BUSY, ts_unregister(caller));
    EXPECT(MANYCORE_BUSY, ts_map_get(caller, callers_map, &key, &value));
    EXPECT(MANYCORE_BUSY, ts_alloc(caller, NULL, 8, &id));
    EXPECT(MANYCORE_OTHER_TYPE, ts_find_map(me, "accounts", 8, 16, &map));
    EXPECT(MANYCORE_OTHER_TYPE, ts_find_map(me, "nothing", 8, 8, &map));
    EXPECT(MANYCORE_OTHER_TYPE, ts_find_root(me, "accounts", 8, &id));
    EXPECT(MANYCORE_INVALID, ts_find_map(me, "accounts", 0, 8, &map));
    EXPECT(MANYCORE_INVALID, ts_find_root(me, "last", 0, &id));
    EXPECT(MANYCORE_NULL, ts_find_map(me, NULL, 8, 8, &map));
    EXPECT(MANYCORE_NULL, ts_find_map(me, "accounts", 8, 8, NULL));
    EXPECT(MANYCORE_NULL, ts_find_root(me, "last", 8, NULL));
    EXPECT(MANYCORE_NULL, ts_input(me, NULL, 1));
    EXPECT(MANYCORE_OK, ts_input(me, NULL, 0));
    return 0;
}

static ts_operation_t operation(const char *name, uint32_t version,
                                int (*run)(ts_member_t *, const void *, size_t))
{
    ts_operation_t made;
    memset(&made, 0, sizeof made);
    made.name = name;
    made.version = version;
    made.run = run;
    return made;
}

static manycore_status_t open_with(const char *directory, const ts_operation_t *operations,
                                   size_t count, ts_store_t **store)
{
    ts_config_t config;
    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.journal_bytes = 1 << 20;
    config.heap_bytes = 64 << 20;
    config.operations = operations;
    config.operation_count = count;
    return ts_open(directory, &config, store);
}

static uint64_t last(ts_store_t *store, ts_member_t *me)
{
    uint64_t root, at;
    const void *seen;
    EXPECT(MANYCORE_OK, ts_root(store, "last", 8, &root));
    EXPECT(MANYCORE_OK, ts_begin(me, TS_READ));
    EXPECT(MANYCORE_OK, ts_deref(me, root, &seen));
    EXPECT(MANYCORE_OK, ts_deref(me, *(const uint64_t *)seen, &seen));
    at = *(const uint64_t *)seen;
    EXPECT(MANYCORE_OK, ts_commit(me, TS_DURABLE, NULL));
    return at;
}

static uint64_t balance(ts_member_t *me, const ts_map_t *accounts, uint64_t key)
{
    uint64_t found = 0;
    EXPECT(MANYCORE_OK, ts_begin(me, TS_READ));
    EXPECT(MANYCORE_OK, ts_map_get(me, accounts, &key, &found));
    EXPECT(MANYCORE_OK, ts_commit(me, TS_DURABLE, NULL));
    return found;
}

/* Fills the store, closes it, so that no value is left in the journal, and calls; then the process
   ends as by a crash. */
static void leave_calls(const char *directory)
{
    ts_operation_t known[2], stranger = operation("stranger", 1, pay_all);
    ts_store_t *store;
    ts_member_t *me;
    const ts_map_t *accounts;
    struct pay pay = {KEYS - 1, 10};
    uint64_t key, root, zero = 0, ticket = 0, before;
    known[0] = operation("pay all", 1, pay_all);
    known[1] = operation("mistakes", 1, mistakes);
    EXPECT(MANYCORE_OK, open_with(directory, known, 2, &store));
    EXPECT(MANYCORE_OK, ts_map(store, "accounts", 8, 8, &accounts));
    EXPECT(MANYCORE_OK, ts_root(store, "last", 8, &root));
    EXPECT(MANYCORE_OK, ts_register(store, &me));
    EXPECT(MANYCORE_OK, ts_begin(me, TS_SNAPSHOT));
    for (key = 0; key < KEYS; key++)
        EXPECT(MANYCORE_OK, ts_map_put(me, accounts, &key, &zero));
    EXPECT(MANYCORE_OK, ts_commit(me, TS_DURABLE, NULL));

    caller = me;
    callers_map = accounts;
    EXPECT(MANYCORE_OK, ts_call(me, &known[1], NULL, 0, TS_DURABLE, NULL));
    EXPECT(MANYCORE_NULL, ts_call(NULL, &known[1], NULL, 0, TS_DURABLE, NULL));
    EXPECT(MANYCORE_NULL, ts_call(me, NULL, NULL, 0, TS_DURABLE, NULL));
    EXPECT(MANYCORE_NULL, ts_call(me, &known[0], NULL, 16, TS_DURABLE, NULL));
    EXPECT(MANYCORE_INVALID, ts_call(me, &known[0], &pay, sizeof pay, 3, NULL));
    EXPECT(MANYCORE_INVALID, ts_call(me, &known[0], &pay, 8, TS_DURABLE, NULL)); /* its own */
    EXPECT(MANYCORE_OTHER_VERSION, ts_call(me, &stranger, &pay, sizeof pay, TS_DURABLE, NULL));
    EXPECT(1, strstr(ts_message(), "stranger") != NULL);
    EXPECT(MANYCORE_NO_SESSION, ts_find_map(me, "accounts", 8, 8, &accounts));
    EXPECT(MANYCORE_NO_SESSION, ts_find_root(me, "last", 8, &root));
    EXPECT(MANYCORE_NO_SESSION, ts_input(me, &zero, 8));
    EXPECT(MANYCORE_OK, ts_begin(me, TS_READ));
    EXPECT(MANYCORE_BUSY, ts_call(me, &known[0], &pay, sizeof pay, TS_DURABLE, NULL));
    EXPECT(MANYCORE_OK, ts_abort(me));
    /* What it has given up has not been. */
    pay.sum = REFUSED;
    EXPECT(REFUSED, ts_call(me, &known[0], &pay, sizeof pay, TS_DURABLE, NULL));
    EXPECT(0, balance(me, accounts, 0));

    EXPECT(MANYCORE_OK, ts_checkpoint(store));
    calls = 0;
    pay.sum = 10;
    EXPECT(MANYCORE_OK, ts_call(me, &known[0], &pay, sizeof pay, TS_DURABLE, NULL));
    before = ts_durable(store);
    pay.sum = 5;
    EXPECT(MANYCORE_OK, ts_call(me, &known[0], &pay, sizeof pay, TS_EVENTUAL, &ticket));
    EXPECT(1, ticket > before);
    EXPECT(MANYCORE_OK, ts_wait(store, ticket));
    EXPECT(2, calls);
    EXPECT(15, balance(me, accounts, KEYS - 1));
    EXPECT(1005, last(store, me));
    fflush(stdout);
    _exit(failed);
}

static void recover(const char *directory)
{
    ts_operation_t known[2];
    ts_contents_t contents;
    ts_store_t *store;
    ts_member_t *me;
    const ts_map_t *accounts;
    EXPECT(MANYCORE_OK, ts_probe(directory, &contents));
    EXPECT(0, contents.is_closed);
    EXPECT(2, contents.transactions);
    EXPECT(1, contents.journal_bytes <= 2 * 4096); /* and not 2 * 500 * 40 */

    EXPECT(MANYCORE_OTHER_VERSION, open_with(directory, NULL, 0, &store));
    EXPECT(1, strstr(ts_message(), "pay all") != NULL);
    known[0] = operation("pay all", 2, pay_all);
    EXPECT(MANYCORE_OTHER_VERSION, open_with(directory, known, 1, &store));
    known[0] = operation("pay all", 1, pays_otherwise);
    EXPECT(MANYCORE_OTHER_VERSION, open_with(directory, known, 1, &store));
    EXPECT(1, strstr(ts_message(), "pay all") != NULL);
    known[0] = operation("pay all", 1, pay_all);
    known[1] = known[0];
    EXPECT(MANYCORE_OTHER_TYPE, open_with(directory, known, 2, &store));
    EXPECT(MANYCORE_NULL, open_with(directory, NULL, 1, &store));
    known[1].run = NULL;
    EXPECT(MANYCORE_NULL, open_with(directory, known, 2, &store));

    calls = 0;
    clock_now = 5000;
    EXPECT(MANYCORE_OK, open_with(directory, known, 1, &store));
    memset(known, 0xff, sizeof known); /* they were copied */
    EXPECT(2, calls);
    EXPECT(MANYCORE_OK, ts_map(store, "accounts", 8, 8, &accounts));
    EXPECT(MANYCORE_OK, ts_register(store, &me));
    EXPECT(15, balance(me, accounts, 0));
    EXPECT(15, balance(me, accounts, KEYS - 1));
    EXPECT(1005, last(store, me));
    EXPECT(MANYCORE_OK, ts_unregister(me));
    EXPECT(MANYCORE_OK, ts_close(store));
    /* Closed, it has no calls. */
    EXPECT(MANYCORE_OK, open_with(directory, NULL, 0, &store));
    EXPECT(MANYCORE_OK, ts_close(store));
}

/* Threads that call the same: what each adds is there. */
static ts_store_t *shared;
static ts_operation_t shared_operation;

static void *pays(void *data)
{
    struct pay pay = {20, 1};
    ts_member_t *me;
    int i;
    (void)data;
    EXPECT(MANYCORE_OK, ts_register(shared, &me));
    for (i = 0; i < 50; i++)
        EXPECT(MANYCORE_OK, ts_call(me, &shared_operation, &pay, sizeof pay, TS_EVENTUAL, NULL));
    EXPECT(MANYCORE_OK, ts_unregister(me));
    return NULL;
}

static void threads(void)
{
    pthread_t others[3];
    ts_config_t config;
    const ts_map_t *accounts;
    ts_member_t *me;
    uint64_t key, root, zero = 0;
    int i;
    shared_operation = operation("pay all", 1, pay_all);
    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.heap_bytes = 64 << 20;
    config.operations = &shared_operation;
    config.operation_count = 1;
    EXPECT(MANYCORE_OK, ts_open_memory(&config, &shared));
    EXPECT(MANYCORE_OK, ts_map(shared, "accounts", 8, 8, &accounts));
    EXPECT(MANYCORE_OK, ts_root(shared, "last", 8, &root));
    EXPECT(MANYCORE_OK, ts_register(shared, &me));
    EXPECT(MANYCORE_OK, ts_begin(me, TS_SNAPSHOT));
    for (key = 0; key <= 20; key++)
        EXPECT(MANYCORE_OK, ts_map_put(me, accounts, &key, &zero));
    EXPECT(MANYCORE_OK, ts_commit(me, TS_DURABLE, NULL));
    for (i = 0; i < 3; i++)
        EXPECT(0, pthread_create(&others[i], NULL, pays, NULL));
    for (i = 0; i < 3; i++)
        EXPECT(0, pthread_join(others[i], NULL));
    EXPECT(150, balance(me, accounts, 20));
    run(pays, NULL);
    EXPECT(200, balance(me, accounts, 20));
    EXPECT(MANYCORE_OK, ts_unregister(me));
    EXPECT(MANYCORE_OK, ts_close(shared));
}

/* A program that was built before there were operations. */
static void as_it_was(void)
{
    ts_config_t config;
    ts_store_t *store;
    memset(&config, 0xff, sizeof config);
    config.size = 40;
    config.journal_bytes = config.ring_bytes = config.window_ns = 0;
    config.heap_bytes = 64 << 20;
    EXPECT(MANYCORE_OK, ts_open_memory(&config, &store));
    EXPECT(MANYCORE_OK, ts_close(store));
}

static void remove_store(const char *directory)
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
    char directory[] = "/tmp/operations-XXXXXX";
    pid_t child;
    int status = -1;
    EXPECT(1, mkdtemp(directory) != NULL);
    child = fork();
    if (child == 0)
        leave_calls(directory);
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
    recover(directory);
    threads();
    as_it_was();
    remove_store(directory);
    return failed;
}
