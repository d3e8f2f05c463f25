/*
 * MvrluDB beside Kyoto Cabinet's classes in memory: records with keys and values of 8 bytes, of
 * which half of the keys are there; each thread gets, and sets in a share of its calls. Rounds of
 * all classes one after the other; the medians of their rates, by wall time and by the CPU time of
 * the threads. Arguments: records, milliseconds of a slice, rounds.
 */
#include <kccachedb.h>
#include <kcprotodb.h>
#include <kcstashdb.h>

#include "mvrlu_db.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <time.h>
#include <vector>

namespace kc = kyotocabinet;

static double cpu_seconds()
{
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

struct Rate {
    double wall, cpu;
};

/* Millions of calls a second. */
static Rate slice(kc::BasicDB *db, uint64_t keys, int threads, unsigned percent, int milliseconds, unsigned seed)
{
    std::atomic<bool> is_over(false);
    std::atomic<uint64_t> calls(0);
    std::atomic<uint64_t> nanoseconds(0);
    std::vector<std::thread> all;
    auto begin = std::chrono::steady_clock::now();
    for (int thread = 0; thread < threads; thread++)
        all.emplace_back([&, thread] {
            uint64_t state = (seed * 64 + uint64_t(thread) + 1) * 0x9E3779B97F4A7C15u, done = 0;
            double cpu = cpu_seconds();
            while (!is_over.load(std::memory_order_relaxed)) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                uint64_t key = (state >> 20) % keys;
                char value[8];
                if (state % 100 < percent)
                    db->set(reinterpret_cast<char *>(&key), 8, reinterpret_cast<char *>(&state), 8);
                else
                    db->get(reinterpret_cast<char *>(&key), 8, value, 8);
                done++;
            }
            nanoseconds += uint64_t(1e9 * (cpu_seconds() - cpu));
            calls += done;
        });
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    is_over = true;
    for (std::thread &thread : all)
        thread.join();
    double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return {double(calls) / wall / 1e6, double(calls) / (double(nanoseconds) / 1e3)};
}

static double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Class {
    const char *name;
    std::unique_ptr<kc::BasicDB> db;
    std::vector<double> wall, cpu;
};

int main(int argc, char **argv)
{
    uint64_t records = argc > 1 ? uint64_t(std::atoll(argv[1])) : 600000;
    int milliseconds = argc > 2 ? std::atoi(argv[2]) : 200;
    int rounds = argc > 3 ? std::atoi(argv[3]) : 7;
    std::vector<Class> classes(4);
    classes[0].name = "MvrluDB";
    classes[0].db.reset(new manycore::MvrluDB);
    classes[1].name = "CacheDB";
    kc::CacheDB *cache = new kc::CacheDB;
    cache->tune_buckets(int64_t(records) * 2);
    classes[1].db.reset(cache);
    classes[2].name = "StashDB";
    kc::StashDB *stash = new kc::StashDB;
    stash->tune_buckets(int64_t(records) * 2);
    classes[2].db.reset(stash);
    classes[3].name = "ProtoHashDB";
    classes[3].db.reset(new kc::ProtoHashDB);
    for (Class &each : classes) {
        if (!each.db->open(":"))
            return 1;
        for (uint64_t key = 0; key < records * 2; key += 2)
            each.db->set(reinterpret_cast<char *>(&key), 8, reinterpret_cast<char *>(&key), 8);
    }
    std::printf("%llu records, M calls/s by wall time, and by the threads' CPU time; medians of %d rounds of %d ms\n",
                (unsigned long long)records, rounds, milliseconds);
    std::printf("%-12s", "threads, set");
    for (Class &each : classes)
        std::printf("%22s", each.name);
    std::printf("\n");
    for (unsigned percent : {2u, 10u, 50u})
        for (int threads : {1, 2, 8}) {
            for (Class &each : classes)
                each.wall.clear(), each.cpu.clear();
            for (int round = 0; round < rounds; round++)
                for (size_t n = 0; n < classes.size(); n++) {
                    Class &each = classes[(n + size_t(round)) % classes.size()];
                    Rate rate = slice(each.db.get(), records * 2, threads, percent, milliseconds, unsigned(round));
                    each.wall.push_back(rate.wall);
                    each.cpu.push_back(rate.cpu);
                }
            std::printf("%3d, %3u %%   ", threads, percent);
            for (Class &each : classes)
                std::printf("%11.2f /%7.2f  ", median(each.wall), median(each.cpu));
            std::printf("\n");
            std::fflush(stdout);
        }
    return 0;
}
