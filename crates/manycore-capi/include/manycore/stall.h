/* Reports of threads that keep memory from being used again. */
#ifndef MANYCORE_STALL_H
#define MANYCORE_STALL_H

#include <stddef.h>
#include <stdint.h>

typedef struct manycore_stall {
    uint32_t thread; /* the kernel's number of the thread that others wait for */
    uint32_t reserved;
    uint64_t blocked_ns; /* for how long they have waited */
    size_t bytes; /* how much memory waits to be used again */
} manycore_stall_t;

/*
 * Called on a thread that waits, with the pointer that the program registered beside it. It must
 * not use the library, except to ask for a text or the version.
 */
typedef void (*manycore_report_t)(const manycore_stall_t *stall, void *context);

#endif
