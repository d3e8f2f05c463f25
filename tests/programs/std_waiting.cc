// The C++ ways to wait: condition variables of both sorts with both clocks, futures, call_once,
// thread exit.
#include "case.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using Wall = std::chrono::system_clock;

static const char *name_of(std::cv_status status) { return status == std::cv_status::timeout ? "timeout" : "no_timeout"; }

/// Time-outs on each clock: the mutex is owned again, and not before its time.
template <class Cond, class Mutex> static void times_out(const char *name) {
    Cond cond;
    Mutex mutex;
    std::unique_lock<Mutex> lock(mutex);
    auto start = Steady::now();
    say(name_of(cond.wait_for(lock, 5ms)), "std.%s.for-5-ms", name);
    HOLDS(Steady::now() - start >= 5ms, "std.%s.waited-5-ms", name);
    say(name_of(cond.wait_until(lock, Steady::now() + 3ms)), "std.%s.until-steady", name);
    say(name_of(cond.wait_until(lock, Wall::now() + 3ms)), "std.%s.until-system", name);
    say(name_of(cond.wait_until(lock, Wall::now() - 1h)), "std.%s.until-past", name);
    say(name_of(cond.wait_for(lock, -1s)), "std.%s.for-negative", name);
    VALUE(cond.wait_for(lock, 3ms, [] { return false; }), "std.%s.for-predicate-false", name);
    VALUE(cond.wait_for(lock, 3ms, [] { return true; }), "std.%s.for-predicate-true", name);
    VALUE(cond.wait_until(lock, Wall::now() + 3ms, [] { return false; }), "std.%s.until-predicate-false", name);
    VALUE(lock.owns_lock(), "std.%s.owns", name);
    VALUE(std::async(std::launch::async, [&] { return mutex.try_lock(); }).get(), "std.%s.held", name);
}

template <class Cond, class Mutex> static void wakes(const char *name) {
    Cond cond;
    Mutex mutex;
    int ready = 0, waiting = 0;
    auto wait = [&](int way) {
        std::unique_lock<Mutex> lock(mutex);
        waiting++;
        auto is_ready = [&] { return ready > 0; };
        bool seen = true;
        if (way == 0) cond.wait(lock, is_ready);
        else if (way == 1) seen = cond.wait_for(lock, 20s, is_ready);
        else if (way == 2) seen = cond.wait_until(lock, Steady::now() + 20s, is_ready);
        else seen = cond.wait_until(lock, Wall::now() + 20s, is_ready);
        ready--;
        return seen;
    };
    std::vector<std::future<bool>> waiters;
    for (int way = 0; way < 4; way++) waiters.push_back(std::async(std::launch::async, wait, way));
    for (int inside = 0; inside < 4; std::this_thread::sleep_for(1ms)) {
        std::lock_guard<Mutex> guard(mutex);
        inside = waiting;
    }
    {
        std::lock_guard<Mutex> guard(mutex);
        ready = 1;
    }
    cond.notify_one();
    std::this_thread::sleep_for(3ms);
    {
        std::lock_guard<Mutex> guard(mutex);
        ready += 3;
        cond.notify_all();
    }
    for (int way = 0; way < 4; way++) VALUE(waiters[way].get(), "std.%s.notified-%d", name, way);
    VALUE(ready, "std.%s.left", name);
}

/// A bounded queue between producers and consumers.
static void queue_between_threads() {
    std::mutex mutex;
    std::condition_variable not_empty, not_full;
    std::deque<long> queue;
    long sum = 0, items = scaled(300);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; t++) {
        threads.emplace_back([&] {
            for (long i = 1; i <= items; i++) {
                std::unique_lock<std::mutex> lock(mutex);
                not_full.wait(lock, [&] { return queue.size() < 4; });
                queue.push_back(i);
                not_empty.notify_one();
            }
        });
        threads.emplace_back([&] {
            for (long i = 1; i <= items; i++) {
                std::unique_lock<std::mutex> lock(mutex);
                if (!not_empty.wait_for(lock, 20s, [&] { return !queue.empty(); })) return;
                sum += queue.front();
                queue.pop_front();
                lock.unlock();
                not_full.notify_one();
            }
        });
    }
    for (auto &thread : threads) thread.join();
    HOLDS(sum == items * (items + 1), "std.queue.everything-arrives");
}

static void futures() {
    std::promise<int> promise;
    auto future = promise.get_future();
    VALUE(future.wait_for(3ms) == std::future_status::timeout, "std.future.times-out");
    std::thread setter([&] { promise.set_value(41); });
    VALUE(future.get(), "std.future.value");
    setter.join();
    std::promise<int> at_exit;
    auto later = at_exit.get_future();
    std::thread([&] { at_exit.set_value_at_thread_exit(42); }).join();
    VALUE(later.wait_for(20s) == std::future_status::ready, "std.future.ready-at-thread-exit");
    VALUE(later.get(), "std.future.value-at-thread-exit");
    std::vector<std::future<int>> tasks;
    for (int i = 0; i < 20; i++) tasks.push_back(std::async(std::launch::async, [i] { return i * i; }));
    long sum = 0;
    for (auto &task : tasks) sum += task.get();
    VALUE(sum, "std.async.sum");
    std::packaged_task<int()> failing([]() -> int { throw std::runtime_error("no"); });
    auto failed = failing.get_future();
    std::thread(std::move(failing)).join();
    try {
        failed.get();
        HOLDS(false, "std.async.exception");
    } catch (const std::runtime_error &) {
        HOLDS(true, "std.async.exception");
    }
}

static int local_static() {
    static int value = [] {
        std::this_thread::sleep_for(3ms);
        return 9;
    }();
    return value;
}

static void once() {
    std::once_flag flag;
    int calls = 0, sum = 0;
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; t++)
        threads.emplace_back([&] {
            std::call_once(flag, [&] { calls++; });
            int value = local_static();
            std::lock_guard<std::mutex> guard(mutex);
            sum += value;
        });
    for (auto &thread : threads) thread.join();
    VALUE(calls, "std.call_once.calls");
    VALUE(sum, "std.local-static.sum");
}

struct AtThreadExit {
    std::mutex &mutex;
    int &runs;
    ~AtThreadExit() {
        std::lock_guard<std::mutex> guard(mutex);
        runs++;
    }
};

/// thread_local destructors lock; notify_all_at_thread_exit wakes after they have run.
static void thread_exit() {
    std::mutex mutex, at_exit;
    std::condition_variable cond;
    int runs = 0;
    bool done = false;
    std::unique_lock<std::mutex> lock(mutex);
    std::thread thread([&] {
        thread_local AtThreadExit witness{at_exit, runs};
        (void)witness;
        std::unique_lock<std::mutex> inner(mutex);
        done = true;
        std::notify_all_at_thread_exit(cond, std::move(inner));
    });
    VALUE(cond.wait_for(lock, 20s, [&] { return done; }), "std.thread-exit.notified");
    lock.unlock();
    thread.join();
    VALUE(runs, "std.thread-exit.destructors");
}

int main() {
    times_out<std::condition_variable, std::mutex>("condition_variable");
    times_out<std::condition_variable_any, std::mutex>("any.mutex");
    times_out<std::condition_variable_any, std::recursive_mutex>("any.recursive_mutex");
    times_out<std::condition_variable_any, std::shared_mutex>("any.shared_mutex");
    times_out<std::condition_variable_any, std::timed_mutex>("any.timed_mutex");
    wakes<std::condition_variable, std::mutex>("condition_variable");
    wakes<std::condition_variable_any, std::mutex>("any.mutex");
    wakes<std::condition_variable_any, std::shared_timed_mutex>("any.shared_timed_mutex");
    queue_between_threads();
    futures();
    once();
    thread_exit();
}
