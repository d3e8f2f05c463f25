/* Cases of C11 functions, whose results have names of their own. */
#ifndef CASE_C11_H
#define CASE_C11_H

#include "case.h"

#include <threads.h>

static inline const char *result_name(int code) {
    switch (code) {
        case thrd_success: return "success";
        case thrd_busy: return "busy";
        case thrd_error: return "error";
        case thrd_nomem: return "nomem";
        case thrd_timedout: return "timedout";
        default: return "?";
    }
}

/* A C11 result by its name, with errno watched. */
#define RESULT(call, ...)                                                              \
    do {                                                                               \
        errno = UNTOUCHED;                                                             \
        int result_ = (call);                                                          \
        say(errno == UNTOUCHED ? result_name(result_) : "changes errno", __VA_ARGS__); \
    } while (0)

#endif
