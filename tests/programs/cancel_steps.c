/* A wait can be cancelled at any of its instructions: from each, the stack unwinds to the caller.
 *
 * glibc cancels by unwinding from where it interrupts the thread. Where the unwinder is lost it
 * goes straight to the program's cleanup handlers, past those of the wait, and they run without the
 * mutex. */
#include "case.h"

#include <unwind.h>

#ifndef __x86_64__
#error "how to step is known for x86-64 only"
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

/* The frame of the function that is stepped through: those above are the wait's. */
static uintptr_t stepped_frame;
static int lost;
static volatile sig_atomic_t steps;

static _Unwind_Reason_Code until_stepped(struct _Unwind_Context *context, void *found) {
    *(bool *)found = _Unwind_GetCFA(context) > stepped_frame;
    return *(bool *)found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static bool unwinds(void) {
    bool found = false;
    _Unwind_Backtrace(until_stepped, &found);
    return found;
}

/* After each instruction. Only while cancellation is asynchronous does it matter where the thread
   is. */
static void after_step(int signal) {
    (void)signal;
    int saved = errno, type;
    steps++;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS && !unwinds()) lost++;
    pthread_setcanceltype(type, &type);
    errno = saved;
}

/* Sets or clears the processor's trap flag.
 * SAFETY: what it pushes is below the red zone, and off the stack at the end. */
#define TRAPS(instruction)                                                                          \
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" instruction ", (%%rsp)\n\tpopfq\n\t" \
                     "lea 128(%%rsp), %%rsp" ::: "memory", "cc")

static bool steps_through(int (*wait)(const struct timespec *)) {
    struct timespec past = {1, 0};
    volatile char here;
    stepped_frame = (uintptr_t)&here;
    lost = steps = 0;
    pthread_mutex_lock(&mutex);
    wait(&past); /* once, so that nothing is left to bind */
    TRAPS("orq $0x100");
    wait(&past);
    TRAPS("andq $~0x100");
    pthread_mutex_unlock(&mutex);
    return steps > 10;
}

static int timedwait(const struct timespec *until) { return pthread_cond_timedwait(&cond, &mutex, until); }

static int clockwait(const struct timespec *until) {
    return pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, until);
}

/* Of the program's own making, as in libraries for threads. */
static int by_number(const struct timespec *until) {
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    long result = syscall(SYS_futex, &steps, 0x80, -1, until);
    pthread_setcanceltype(type, &type);
    return (int)result;
}

int main(void) {
    signal(SIGTRAP, after_step);
    HOLDS(steps_through(timedwait), "cancel.steps.timedwait.taken");
    VALUE(lost, "cancel.steps.timedwait.lost");
    HOLDS(steps_through(clockwait), "cancel.steps.clockwait.taken");
    VALUE(lost, "cancel.steps.clockwait.lost");
    HOLDS(steps_through(by_number), "cancel.steps.by_number.taken");
    VALUE(lost, "cancel.steps.by_number.lost");
    return 0;
}
