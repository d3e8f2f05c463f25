/* Somebody who keeps memory from being used again. */
#ifndef MANYCORE_STALL_H
#define MANYCORE_STALL_H

#include <stddef.h>
#include <stdint.h>

typedef struct manycore_stall {
    uint32_t thread; /* the kernel's number of the thread that is in the way */
    uint32_t reserved;
    uint64_t age; /* for how long, in ticks of the CPU's counter */
    size_t bytes; /* what waits because of it */
} manycore_stall_t;

/*
 * Is told of one, on the thread that waits, with the pointer that it was given with. It must not
 * use the library, except to ask for a text or the version.
 */
typedef void (*manycore_report_t)(const manycore_stall_t *stall, void *context);

#endif
