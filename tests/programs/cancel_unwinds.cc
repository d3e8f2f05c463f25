/* Cancellation and thread exit unwind C++ frames, through waits too; exceptions leave locks as they
   should be. */
#include "case.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static std::mutex std_mutex;
static std::condition_variable std_cond;
static int destroyed, waiting, caught;

struct Witness {
    ~Witness() { destroyed++; }
};

struct Unlocks {
    pthread_mutex_t &mutex;
    ~Unlocks() {
        destroyed += pthread_mutex_trylock(&mutex) == EBUSY;
        pthread_mutex_unlock(&mutex);
    }
};

static int wait_with_destructors(void *) {
    Witness outer;
    pthread_mutex_lock(&mutex);
    Unlocks guard{mutex};
    try {
        Witness inner;
        waiting = 1;
        for (;;) pthread_cond_wait(&cond, &mutex);
    } catch (...) {
        caught++;
        throw;
    }
}

static int timedwait_with_destructors(void *) {
    Witness outer;
    pthread_mutex_lock(&mutex);
    Unlocks guard{mutex};
    struct timespec later = after_ms(CLOCK_MONOTONIC, 20000);
    for (;;) pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &later);
}

static int exit_with_destructors(void *) {
    Witness outer;
    pthread_mutex_lock(&mutex);
    Unlocks guard{mutex};
    pthread_exit(reinterpret_cast<void *>(66));
}

static void *result_of(struct other *thread) {
    void *result = nullptr;
    pthread_join(thread->thread, &result);
    return result;
}

static void cancelled(const char *name, Call call) {
    struct other thread;
    destroyed = caught = 0;
    begin(&thread, call, nullptr);
    HOLDS(!is_done(&thread), "unwind.%s.waits", name);
    CODE(pthread_cancel(thread.thread), "unwind.%s.cancel", name);
    HOLDS(result_of(&thread) == PTHREAD_CANCELED, "unwind.%s.cancelled", name);
    VALUE(destroyed, "unwind.%s.destructors", name);
    VALUE(caught, "unwind.%s.caught-and-rethrown", name);
    CODE(probe(&mutex), "unwind.%s.mutex-free-after", name);
}

static int wait_in_std(void *) {
    Witness outer;
    std::unique_lock<std::mutex> lock(std_mutex);
    waiting = 1;
    std_cond.wait(lock, [] { return false; });
    return 77;
}

static void exits(void) {
    struct other thread;
    destroyed = 0;
    begin(&thread, exit_with_destructors, nullptr);
    VALUE(reinterpret_cast<long>(result_of(&thread)), "unwind.exit.value");
    VALUE(destroyed, "unwind.exit.destructors");
    CODE(probe(&mutex), "unwind.exit.mutex-free-after");
}

static void throws_in_section(void) {
    for (int i = 0; i < 3; i++) {
        try {
            std::lock_guard<std::mutex> guard(std_mutex);
            throw std::runtime_error("in the section");
        } catch (const std::runtime_error &) {
            HOLDS(std_mutex.try_lock(), "unwind.throw.free-after-%d", i);
            std_mutex.unlock();
        }
    }
}

static std::once_flag flag;
static pthread_once_t posix_once = PTHREAD_ONCE_INIT;
static int attempts;

static void throw_twice() {
    if (++attempts < 3) throw std::runtime_error("not yet");
}

static void throws_in_once(void) {
    attempts = 0;
    for (int i = 1; i <= 4; i++) {
        bool thrown = false;
        try {
            std::call_once(flag, throw_twice);
        } catch (const std::runtime_error &) {
            thrown = true;
        }
        VALUE(thrown, "unwind.call_once.throws-%d", i);
        VALUE(attempts, "unwind.call_once.attempts-%d", i);
    }
    attempts = 0;
    for (int i = 1; i <= 4; i++) {
        bool thrown = false;
        try {
            pthread_once(&posix_once, throw_twice);
        } catch (const std::runtime_error &) {
            thrown = true;
        }
        VALUE(thrown, "unwind.pthread_once.throws-%d", i);
        VALUE(attempts, "unwind.pthread_once.attempts-%d", i);
    }
}

static std::once_flag crowded;
static std::atomic<int> thrown_in_crowd, calls_in_crowd;

/* Of eight threads one calls; its exception is its own, and another calls again, until a call
   returns. */
static void throws_before_others(void) {
    crew(8, [](long) {
        try {
            std::call_once(crowded, [] {
                std::lock_guard<std::mutex> guard(std_mutex);
                pause_ms(2);
                if (++calls_in_crowd < 4) throw std::runtime_error("not yet");
            });
        } catch (const std::runtime_error &) {
            thrown_in_crowd++;
        }
    });
    VALUE(calls_in_crowd.load(), "unwind.call_once.crowd.calls");
    VALUE(thrown_in_crowd.load(), "unwind.call_once.crowd.throws");
    HOLDS(std_mutex.try_lock(), "unwind.call_once.crowd.mutex-free-after");
    std_mutex.unlock();
}

int main() {
    cancelled("wait", wait_with_destructors);
    cancelled("clockwait", timedwait_with_destructors);
    cancelled("std-wait", wait_in_std);
    HOLDS(std_mutex.try_lock(), "unwind.std-wait.std-mutex-free-after");
    std_mutex.unlock();
    exits();
    throws_in_section();
    throws_in_once();
    throws_before_others();
    return 0;
}
