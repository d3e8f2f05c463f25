// The C++ mutexes: std::mutex, timed, recursive, shared, with every way to lock them.
#include "case.h"

#include <chrono>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using Wall = std::chrono::system_clock;

static int rounds;

/// What `function` returns in another thread.
template <class F> static auto elsewhere_cpp(F function) {
    return std::async(std::launch::async, function).get();
}

template <class Mutex> static bool try_elsewhere(Mutex &mutex) {
    return elsewhere_cpp([&] {
        bool locked = mutex.try_lock();
        if (locked) mutex.unlock();
        return locked;
    });
}

template <class Mutex> static void basics(const char *name, Mutex &mutex, bool recursive) {
    mutex.lock();
    VALUE(try_elsewhere(mutex), "std.%s.held.try-elsewhere", name);
    if (recursive) {
        VALUE(mutex.try_lock(), "std.%s.held.try-again", name);
        mutex.lock();
        mutex.unlock();
        mutex.unlock();
        VALUE(try_elsewhere(mutex), "std.%s.still-held", name);
    }
    mutex.unlock();
    VALUE(try_elsewhere(mutex), "std.%s.free.try-elsewhere", name);
    VALUE(mutex.try_lock(), "std.%s.free.try", name);
    VALUE(try_elsewhere(mutex), "std.%s.try-has-locked", name);
    mutex.unlock();

    long counted = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < rounds; i++) {
                std::lock_guard<Mutex> guard(mutex);
                counted++;
            }
        });
    for (auto &thread : threads) thread.join();
    HOLDS(counted == 4 * rounds, "std.%s.nothing-lost", name);
}

template <class Mutex> static void timed(const char *name, Mutex &mutex) {
    mutex.lock();
    auto start = Steady::now();
    VALUE(elsewhere_cpp([&] { return mutex.try_lock_for(5ms); }), "std.%s.held.for-5-ms", name);
    HOLDS(Steady::now() - start >= 5ms, "std.%s.held.for-waited-5-ms", name);
    VALUE(elsewhere_cpp([&] { return mutex.try_lock_for(-5ms); }), "std.%s.held.for-negative", name);
    VALUE(elsewhere_cpp([&] { return mutex.try_lock_until(Steady::now() + 4ms); }), "std.%s.held.until-steady", name);
    VALUE(elsewhere_cpp([&] { return mutex.try_lock_until(Wall::now() + 4ms); }), "std.%s.held.until-system", name);
    VALUE(elsewhere_cpp([&] { return mutex.try_lock_until(Wall::now() - 1h); }), "std.%s.held.until-past", name);
    std::promise<void> asked;
    auto waiter = std::async(std::launch::async, [&] {
        asked.set_value();
        bool locked = mutex.try_lock_for(20s);
        if (locked) mutex.unlock();
        return locked;
    });
    asked.get_future().wait();
    std::this_thread::sleep_for(3ms);
    mutex.unlock();
    VALUE(waiter.get(), "std.%s.released.for-20-s", name);
    HOLDS(Steady::now() - start < 15s, "std.%s.released.in-time", name);
    VALUE(mutex.try_lock_for(-1s), "std.%s.free.for-negative", name);
    mutex.unlock();
}

template <class Mutex> static void shared(const char *name, Mutex &mutex) {
    auto try_shared = [&] {
        return elsewhere_cpp([&] {
            bool locked = mutex.try_lock_shared();
            if (locked) mutex.unlock_shared();
            return locked;
        });
    };
    mutex.lock();
    VALUE(try_shared(), "std.%s.written.try-shared", name);
    mutex.unlock();
    mutex.lock_shared();
    VALUE(try_shared(), "std.%s.read.try-shared", name);
    VALUE(try_elsewhere(mutex), "std.%s.read.try", name);
    mutex.unlock_shared();

    long value = 0, copy = 0, torn = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < rounds; i++) {
                if (t == 0) {
                    std::unique_lock<Mutex> lock(mutex);
                    value++;
                    copy++;
                } else {
                    std::shared_lock<Mutex> lock(mutex);
                    if (value != copy) torn = 1;
                }
                if (i % 16 == 0) std::this_thread::yield();
            }
        });
    for (auto &thread : threads) thread.join();
    HOLDS(value == rounds && copy == rounds && !torn, "std.%s.readers-see-whole-writes", name);
}

static void shared_timed(const char *name, std::shared_timed_mutex &mutex) {
    mutex.lock();
    VALUE(elsewhere_cpp([&] { return mutex.try_lock_shared_for(4ms); }), "std.%s.written.shared-for", name);
    VALUE(elsewhere_cpp([&] { return mutex.try_lock_shared_until(Wall::now() + 4ms); }), "std.%s.written.shared-until", name);
    mutex.unlock();
    mutex.lock_shared();
    VALUE(elsewhere_cpp([&] {
              bool locked = mutex.try_lock_shared_for(4ms);
              if (locked) mutex.unlock_shared();
              return locked;
          }),
          "std.%s.read.shared-for", name);
    VALUE(elsewhere_cpp([&] { return mutex.try_lock_for(4ms); }), "std.%s.read.for", name);
    mutex.unlock_shared();
}

static void several_at_once() {
    std::mutex a, b, c;
    long counted = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < rounds; i++) {
                if (t == 0) std::lock(a, b, c);
                else if (t == 1) std::lock(c, a, b);
                else std::lock(b, c, a);
                counted++;
                a.unlock();
                b.unlock();
                c.unlock();
            }
        });
    for (auto &thread : threads) thread.join();
    HOLDS(counted == 3 * rounds, "std.lock.three-in-any-order");
    b.lock();
    VALUE(elsewhere_cpp([&] { return std::try_lock(a, b, c); }), "std.try_lock.index-of-the-held");
    b.unlock();
    VALUE(try_elsewhere(a), "std.try_lock.others-released");
}

static void errors() {
    std::mutex mutex;
    std::unique_lock<std::mutex> lock(mutex);
    try {
        lock.lock();
        HOLDS(false, "std.errors.relock");
    } catch (const std::system_error &error) {
        VALUE(error.code().value(), "std.errors.relock");
    }
    lock.unlock();
    std::shared_mutex shared;
    shared.lock();
    try {
        shared.lock();
        HOLDS(false, "std.errors.shared-relock");
    } catch (const std::system_error &error) {
        VALUE(error.code().value(), "std.errors.shared-relock");
    }
    shared.unlock();
}

/// Constructed before main and destroyed after it, as globals of C++ programs are.
struct Global {
    std::mutex mutex;
    std::recursive_mutex recursive;
    Global() { use("before-main"); }
    ~Global() { use("after-main"); }
    void use(const char *when) {
        std::lock_guard<std::mutex> guard(mutex);
        std::lock_guard<std::recursive_mutex> outer(recursive), inner(recursive);
        VALUE(try_elsewhere(mutex), "std.global.%s.held", when);
        VALUE(try_elsewhere(recursive), "std.global.%s.recursive-held", when);
    }
} global;

int main() {
    rounds = scaled(300);
    std::mutex mutex;
    std::timed_mutex timed_mutex;
    std::recursive_mutex recursive;
    std::recursive_timed_mutex recursive_timed;
    std::shared_mutex shared_mutex;
    std::shared_timed_mutex shared_timed_mutex;
    basics("mutex", mutex, false);
    basics("timed_mutex", timed_mutex, false);
    basics("recursive_mutex", recursive, true);
    basics("recursive_timed_mutex", recursive_timed, true);
    basics("shared_mutex", shared_mutex, false);
    basics("shared_timed_mutex", shared_timed_mutex, false);
    timed("timed_mutex", timed_mutex);
    timed("recursive_timed_mutex", recursive_timed);
    timed("shared_timed_mutex", shared_timed_mutex);
    shared("shared_mutex", shared_mutex);
    shared("shared_timed_mutex", shared_timed_mutex);
    shared_timed("shared_timed_mutex", shared_timed_mutex);
    several_at_once();
    errors();
}
