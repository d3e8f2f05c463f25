/*
 * Random calls on MvrluDB and on Kyoto Cabinet's CacheDB: answers, errors and records are the same.
 * Then by several threads, with a sum that every iteration finds. Arguments: seed, calls. The last
 * line counts, as those of test programs in Rust.
 */
#include <kccachedb.h>

#include "../mvrlu_db.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <thread>

namespace kc = kyotocabinet;
typedef std::map<std::string, std::string> Records;
typedef kc::BasicDB::Error Error;

static int passed, failed;
static bool is_ok;

#define EXPECT(condition)                                                          \
    do {                                                                           \
        if (!(condition) && is_ok) {                                               \
            is_ok = false;                                                         \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
        }                                                                          \
    } while (0)

static void test(const char *name, const std::function<void()> &run)
{
    is_ok = true;
    try {
        run();
    } catch (const std::exception &e) {
        std::printf("an exception: %s\n", e.what());
        is_ok = false;
    }
    std::printf("%s  %s\n", is_ok ? "ok    " : "FAILED", name);
    std::fflush(stdout);
    (is_ok ? passed : failed)++;
}

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed)
    {
    }
    size_t below(size_t n)
    {
        return engine_() % n;
    }
    std::string key()
    {
        std::string text = std::to_string(below(300) * 7919);
        return text.substr(0, below(12) == 0 ? below(text.size() + 1) : text.size());
    }
    std::string value()
    {
        static const size_t sizes[] = {0, 8, 8, 9, 40, 500, 4090, 9000};
        return std::string(sizes[below(8)] + below(3), char('a' + below(26)));
    }

private:
    std::mt19937 engine_;
};

class Dump : public kc::DB::Visitor {
public:
    Records records;
    size_t calls = 0;

private:
    const char *visit_full(const char *k, size_t ks, const char *v, size_t vs, size_t *) override
    {
        records[std::string(k, ks)] = std::string(v, vs);
        calls++;
        return NOP;
    }
};

static Records dump(kc::BasicDB *db)
{
    Dump visitor;
    EXPECT(db->iterate(&visitor, false));
    EXPECT(visitor.calls == visitor.records.size());
    EXPECT(db->count() == int64_t(visitor.calls));
    return visitor.records;
}

static Records walk(kc::BasicDB *db)
{
    Records records;
    kc::DB::Cursor *cursor = db->cursor();
    std::string key, value;
    if (cursor->jump())
        while (cursor->get(&key, &value, true))
            EXPECT(records.insert(std::make_pair(key, value)).second);
    EXPECT(db->error() == Error::NOREC);
    delete cursor;
    return records;
}

/* Does with a record what is drawn from its key and value alone, so that it is the same in both, in
   any order. */
class Changer : public kc::DB::Visitor {
public:
    Changer(unsigned salt) : salt_(salt)
    {
    }
    size_t calls = 0;

private:
    const char *visit_full(const char *k, size_t ks, const char *v, size_t vs, size_t *sp) override
    {
        return answer(std::string(k, ks) + "=" + std::string(v, vs), sp);
    }
    const char *visit_empty(const char *k, size_t ks, size_t *sp) override
    {
        return answer(std::string(k, ks), sp);
    }
    const char *answer(const std::string &of, size_t *sp)
    {
        calls++;
        uint64_t hash = kc::hashmurmur(of.data(), of.size()) ^ salt_ * 0x9E3779B9u;
        switch (hash % 4) {
        case 0:
            return REMOVE;
        case 1:
            return NOP;
        default:
            new_ = std::string(hash / 4 % 60, char('A' + hash % 26));
            *sp = new_.size();
            return new_.data();
        }
    }
    unsigned salt_;
    std::string new_;
};

static bool same_call(Random &random, kc::BasicDB *db)
{
    /* Both databases get a copy of the same random numbers. */
    std::string key = random.key(), value = random.value(), other = random.value();
    switch (random.below(16)) {
    case 0:
    case 1:
    case 2:
        return db->set(key, value);
    case 3:
        return db->add(key, value);
    case 4:
        return db->replace(key, value);
    case 5:
        return db->append(key, value);
    case 6:
        return db->increment(key, 1, 5) != kc::INT64MIN;
    case 7:
        return db->cas(key.data(), key.size(), other.data(), other.size(), value.data(), value.size());
    case 8:
    case 9:
        return db->remove(key);
    case 10: {
        size_t size;
        char *seized = db->seize(key.data(), key.size(), &size);
        delete[] seized;
        return seized != nullptr;
    }
    case 11: {
        Changer changer(unsigned(random.below(1000)));
        return db->accept(key.data(), key.size(), &changer, true) && changer.calls == 1;
    }
    case 12: {
        std::vector<std::string> keys;
        for (size_t n = random.below(20); n > 0; n--)
            keys.push_back(random.key());
        Changer changer(unsigned(random.below(1000)));
        return db->accept_bulk(keys, &changer, true) && changer.calls == keys.size();
    }
    case 13: {
        std::map<std::string, std::string> records;
        for (size_t n = random.below(20); n > 0; n--)
            records[random.key()] = random.value();
        return db->set_bulk(records, random.below(2)) == int64_t(records.size());
    }
    case 14: {
        kc::DB::Cursor *cursor = db->cursor();
        Changer changer(unsigned(random.below(1000)));
        bool is_there = cursor->jump(key) && cursor->accept(&changer, true, false);
        delete cursor;
        return is_there;
    }
    default: {
        char buffer[32];
        int32_t size = db->get(key.data(), key.size(), buffer, sizeof(buffer));
        return size >= 0 && db->check(key) == size;
    }
    }
}

static void same_sequences(unsigned seed, int calls)
{
    kc::CacheDB theirs;
    manycore::MvrluDB ours;
    EXPECT(theirs.open("*") && ours.open("*"));
    Random random(seed);
    bool is_in_transaction = false;
    for (int call = 0; call < calls && is_ok; call++) {
        size_t kind = random.below(200);
        if (kind == 0 && !is_in_transaction) {
            EXPECT(theirs.begin_transaction() && ours.begin_transaction());
            EXPECT(!ours.begin_transaction_try() && ours.error() == Error::LOGIC);
            is_in_transaction = true;
        } else if (kind < 8 && is_in_transaction) {
            bool commit = random.below(3) > 0;
            EXPECT(theirs.end_transaction(commit) && ours.end_transaction(commit));
            is_in_transaction = false;
        } else if (kind == 9 && !is_in_transaction) {
            Changer one{unsigned(call)}, other{unsigned(call)};
            EXPECT(theirs.iterate(&one, true) && ours.iterate(&other, true));
            EXPECT(one.calls == other.calls);
        } else if (kind == 10 && !is_in_transaction && random.below(4) == 0) {
            EXPECT(theirs.clear() && ours.clear());
        } else if (kind < 20) {
            EXPECT(dump(&theirs) == dump(&ours));
            EXPECT(walk(&ours) == dump(&ours));
            Dump parallel;
            EXPECT(ours.scan_parallel(&parallel, 1) && parallel.records == dump(&ours));
        } else {
            Random copy = random;
            bool one = same_call(copy, &theirs);
            bool other = same_call(random, &ours);
            EXPECT(one == other);
            if (!one)
                EXPECT(theirs.error() == ours.error());
        }
    }
    if (is_in_transaction)
        EXPECT(theirs.end_transaction(false) && ours.end_transaction(false));
    EXPECT(dump(&theirs) == dump(&ours));
    EXPECT(ours.close() && theirs.close());
}

static void misuse()
{
    manycore::MvrluDB db;
    EXPECT(!db.set("a", "b") && db.error() == Error::INVALID);
    EXPECT(!db.close() && db.error() == Error::INVALID);
    EXPECT(db.count() == -1 && db.size() == -1);
    EXPECT(db.open("*"));
    EXPECT(!db.open("*") && db.error() == Error::INVALID);
    EXPECT(!db.end_transaction() && db.error() == Error::INVALID);
    kc::DB::Cursor *cursor = db.cursor();
    EXPECT(!cursor->jump() && db.error() == Error::NOREC);
    EXPECT(!cursor->step() && db.error() == Error::NOREC);
    EXPECT(!cursor->jump_back() && db.error() == Error::NOIMPL);
    EXPECT(!cursor->step_back() && db.error() == Error::NOIMPL);
    EXPECT(db.set("a", "1") && cursor->jump());
    Changer changer(3);
    EXPECT(!db.accept("b", 1, &changer, false) || changer.calls == 1);
    /* A call in a visitor of the same database is refused. */
    struct Nested : kc::DB::Visitor {
        manycore::MvrluDB *db;
        bool is_refused;
        const char *visit_full(const char *, size_t, const char *, size_t, size_t *) override
        {
            is_refused = !db->set("a", "2") && db->error() == Error::LOGIC;
            return NOP;
        }
    } nested;
    nested.db = &db;
    EXPECT(db.accept("a", 1, &nested, true) && nested.is_refused);
    EXPECT(db.iterate(&nested, false) && nested.is_refused);
    /* An exception comes out as it went in, and nothing has happened. */
    struct Throws : kc::DB::Visitor {
        const char *visit_full(const char *, size_t, const char *, size_t, size_t *) override
        {
            throw std::runtime_error("on purpose");
        }
    } throws;
    int caught = 0;
    for (int way = 0; way < 4; way++) {
        try {
            switch (way) {
            case 0:
                db.accept("a", 1, &throws, true);
                break;
            case 1:
                db.accept("a", 1, &throws, false);
                break;
            case 2:
                db.iterate(&throws, true);
                break;
            default:
                db.iterate(&throws, false);
            }
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    EXPECT(caught == 4);
    std::string value;
    EXPECT(db.get("a", &value) && value == "1");
    EXPECT(db.close());
    EXPECT(db.open("*", kc::BasicDB::OREADER));
    EXPECT(!cursor->step() && db.error() == Error::NOREC);
    EXPECT(!db.set("a", "b") && db.error() == Error::NOPERM);
    EXPECT(!db.begin_transaction() && db.error() == Error::NOPERM);
    EXPECT(db.close());
    delete cursor;
}

static void too_large()
{
    manycore::MvrluDB db;
    EXPECT(db.tune_log(1 << 20) && db.tune_records(1000000) && db.open("*"));
    EXPECT(db.set("before", "1") && db.begin_transaction());
    bool is_done = true;
    for (int key = 0; is_done && key < 1000000; key++)
        is_done = db.set(std::to_string(key), "");
    EXPECT(!is_done && db.error() == Error::LOGIC);
    EXPECT(!db.end_transaction(true) && db.error() == Error::LOGIC);
    EXPECT(db.count() == 1 && db.set("after", "2") && db.count() == 2);
    EXPECT(db.close());
}

/* Two accounts at a time, which accept_bulk changes together, while others look at all of them. */
class Transfer : public kc::DB::Visitor {
public:
    size_t calls = 0;

private:
    const char *visit_full(const char *, size_t, const char *v, size_t, size_t *sp) override
    {
        int64_t worth;
        std::memcpy(&worth, v, sizeof(worth));
        worth += calls++ == 0 ? -5 : 5;
        new_.assign(reinterpret_cast<const char *>(&worth), sizeof(worth));
        new_.append(calls % 2 ? 3000 : 5000, '.');
        *sp = new_.size();
        return new_.data();
    }
    std::string new_;
};

class Sum : public kc::DB::Visitor {
public:
    int64_t sum = 0, accounts = 0;

private:
    const char *visit_full(const char *k, size_t, const char *v, size_t, size_t *) override
    {
        int64_t worth = 0;
        if (k[0] == 'a') {
            std::memcpy(&worth, v, sizeof(worth));
            accounts++;
        }
        sum += worth;
        return NOP;
    }
};

static void a_sum_is_kept(unsigned seed, int rounds)
{
    const int64_t accounts = 50;
    manycore::MvrluDB db;
    EXPECT(db.open("*"));
    for (int64_t n = 0; n < accounts; n++) {
        int64_t worth = 100;
        EXPECT(db.set("a" + std::to_string(n), std::string(reinterpret_cast<const char *>(&worth), sizeof(worth))));
    }
    std::atomic<int> running(4), errors(0);
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 4; thread++)
        threads.emplace_back([&, thread] {
            Random random(seed * 10 + thread);
            for (int round = 0; round < rounds; round++) {
                size_t from = random.below(accounts), to = (from + 1 + random.below(accounts - 1)) % accounts;
                Transfer transfer;
                std::vector<std::string> keys = {"a" + std::to_string(from), "a" + std::to_string(to)};
                if (!db.accept_bulk(keys, &transfer, true) || transfer.calls != 2)
                    errors++;
                if (round % 50 == 0) {
                    if (!db.begin_transaction())
                        errors++;
                    Transfer one;
                    if (!db.accept(keys[0].data(), keys[0].size(), &one, true) || !db.accept(keys[1].data(), keys[1].size(), &one, true))
                        errors++;
                    if (!db.end_transaction(round % 100 == 0))
                        errors++;
                }
                db.set("other" + std::to_string(random.below(5000)), random.value());
                db.remove("other" + std::to_string(random.below(5000)));
            }
            running--;
        });
    int looks = 0;
    do {
        Sum sum, parallel;
        EXPECT(db.iterate(&sum, false));
        EXPECT(sum.accounts == accounts && sum.sum == accounts * 100);
        looks++;
    } while (running > 0);
    for (std::thread &thread : threads)
        thread.join();
    EXPECT(errors == 0 && looks > 0);
    EXPECT(dump(&db) == walk(&db));
    EXPECT(db.close());
}

/* Databases come and go beside threads that come and go. */
static void threads_and_databases_come_and_go()
{
    for (int round = 0; round < 20; round++) {
        manycore::MvrluDB one, other;
        EXPECT(one.open("*") && other.open("*"));
        std::vector<std::thread> threads;
        std::atomic<int> errors(0);
        for (int thread = 0; thread < 3; thread++)
            threads.emplace_back([&, thread] {
                for (int key = 0; key < 100; key++)
                    if (!one.set(std::to_string(key), "1") || !other.set(std::to_string(key * thread), "2"))
                        errors++;
                /* Who ends in a transaction has aborted it, and lets others in. */
                if (thread == 0 && (!one.begin_transaction() || !one.clear()))
                    errors++;
            });
        for (std::thread &thread : threads)
            thread.join();
        EXPECT(errors == 0 && one.count() == 100);
        if (round % 2)
            EXPECT(one.close() && one.open("*") && one.count() == 0);
    }
}

/* Threads write into a database with caps. */
static void caps_are_kept(unsigned seed, int calls)
{
    const int THREADS = 8;
    manycore::MvrluDB db;
    EXPECT(db.cap_count(100) && db.cap_size(4000) && db.open("*"));
    EXPECT(!db.cap_count(1));
    Random random(seed);
    for (int n = 0; n < calls; n++) {
        std::string key = std::to_string(random.below(1000)), value(random.below(200), 'v'), found;
        EXPECT(db.set(key, value));
        EXPECT(db.count() <= 100 && db.size() <= 4000);
        EXPECT(db.get(key, &found) && found == value);
    }
    EXPECT(db.increment("number", 1) == 1 && db.count() <= 100);
    std::vector<std::thread> threads;
    for (int t = 0; t < THREADS; t++)
        threads.emplace_back([&db, t, calls, seed] {
            Random random(seed + unsigned(t));
            for (int n = 0; n < calls; n++)
                db.set(std::to_string(random.below(1000)), "value");
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT(db.count() <= 100 + THREADS);
    EXPECT(db.set("last", "value") && db.count() <= 100);
    Records records;
    std::unique_ptr<kc::DB::Cursor> cursor(db.cursor());
    std::string key, value;
    for (cursor->jump(); cursor->get(&key, &value, true);)
        records[key] = value;
    EXPECT(int64_t(records.size()) == db.count());
}

int main(int argc, char **argv)
{
    unsigned seed = argc > 1 ? unsigned(std::atoi(argv[1])) : 1;
    int calls = argc > 2 ? std::atoi(argv[2]) : 20000;
    for (unsigned n = 0; n < 5; n++)
        test(("random calls, as CacheDB's, seed " + std::to_string(seed + n)).c_str(), [=] { same_sequences(seed + n, calls); });
    test("misuse", misuse);
    test("a transaction that is too large", too_large);
    test("a sum that accept_bulk keeps", [=] { a_sum_is_kept(seed, calls / 20); });
    test("caps are kept", [=] { caps_are_kept(seed, calls / 20); });
    test("threads and databases come and go", threads_and_databases_come_and_go);
    std::printf("test result: %s. %d passed; %d failed\n", failed ? "FAILED" : "ok", passed, failed);
    return failed > 0;
}
