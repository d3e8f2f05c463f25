/*
 * What the functions of manycore return that can fail, and the version.
 *
 * Every function may be called from any thread, but not from a signal handler, unless its comment
 * says otherwise. None of them throws, and none lets a C++ exception pass: one that leaves a
 * callback ends the process.
 */
#ifndef MANYCORE_STATUS_H
#define MANYCORE_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers; the library's own is manycore_version(). */
/* 0.2.0: 10,000 times the first number, 100 times the second, and the third */
#define MANYCORE_VERSION 200

typedef enum manycore_status {
    MANYCORE_OK = 0,
    MANYCORE_NULL = 1,            /* a pointer is null that must not be */
    MANYCORE_INVALID = 2,         /* an argument is out of its range */
    MANYCORE_NOT_INITIALIZED = 3, /* before RLU_INIT, or after RLU_FINISH */
    MANYCORE_ALREADY = 4,         /* initialized already; nothing has changed */
    /* in use: held, waited for, or with a session or a thread that has not ended */
    MANYCORE_BUSY = 5,
    MANYCORE_NOT_REGISTERED = 6,  /* a thread that is not registered */
    MANYCORE_NOT_OWNER = 7,       /* the calling thread does not hold the lock */
    MANYCORE_DEADLOCK = 8,        /* the calling thread would wait for itself */
    MANYCORE_TIMED_OUT = 9,
    MANYCORE_UNKNOWN_LOCK = 10, /* no lock has this name */
    MANYCORE_NO_SESSION = 11,   /* outside a section */
    MANYCORE_REPEATED = 12,     /* inserted or removed twice in a row */
    MANYCORE_CONFLICT = 13,     /* another thread was faster: begin again */
    MANYCORE_FULL = 14,         /* no room in the heap, in the journal or on the disk */
    MANYCORE_TOO_LARGE = 15,    /* a transaction that has to be divided */
    MANYCORE_POISONED = 16,     /* a write has failed before: close the store, and open it again */
    MANYCORE_CORRUPTED = 17,    /* a file is damaged */
    MANYCORE_LOCKED = 18,       /* a store is open already, here or in another process */
    /* a store of another format, or with calls of operations that only the program that has
       written it knows */
    MANYCORE_OTHER_VERSION = 19,
    MANYCORE_OTHER_TYPE = 20,   /* a name of something else */
    MANYCORE_IO = 21,           /* an error of the operating system: see ts_message */
    MANYCORE_NOT_FOUND = 22,    /* no such key */
    MANYCORE_READS_ONLY = 23,   /* a change in a session that only reads */
    MANYCORE_FAILED = 24        /* a map's transaction can only be aborted */
} manycore_status_t;

/* A line about a status, also of numbers that are none. Never null; stays valid. */
const char *manycore_strerror(int status);

/* The version of the library that the program runs with. */
uint32_t manycore_version(void);

#ifdef __cplusplus
}
#endif

/*
 * ThreadSanitizer does not see what the library orders, which is not compiled with it. In a program
 * that is, what follows tells it: see docs/src/capi.md.
 */
#if defined(__SANITIZE_THREAD__)
#define MANYCORE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MANYCORE_TSAN 1
#endif
#endif
#ifdef MANYCORE_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#endif
