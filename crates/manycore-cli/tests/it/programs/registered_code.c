/* Code that the program makes itself, with tables for unwinding that it registers, as LLVM's
 * just-in-time compiler does. From then on libgcc takes a lock of pthreads to unwind. */
#include <execinfo.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern void __register_frame(void *);

/* A common entry and one for a function, as DWARF has them, and the end. */
static struct {
    uint32_t common_bytes, common_id;
    uint8_t version, augmentation, code_unit, data_unit, return_column, rules[7];
    uint32_t function_bytes, to_common;
    const void *start;
    uint64_t bytes, no_rules;
    uint32_t end;
} tables;
static char code[64];

static void *unwind(void *unused) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    void *calls[8];
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&mutex);
        if (backtrace(calls, 8) < 2) return "no calls";
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(void) {
    enum { DEF_CFA = 0x0c, OFFSET = 0x80, STACK_POINTER = 7, RETURN = 16 };
    const uint8_t rules[] = {DEF_CFA, STACK_POINTER, 8, OFFSET | RETURN, 1};
    tables.version = 1;
    tables.code_unit = 1;
    tables.data_unit = 0x78;
    tables.return_column = RETURN;
    memcpy(tables.rules, rules, sizeof rules);
    tables.common_bytes = 4 + 5 + sizeof tables.rules;
    tables.function_bytes = 4 + 8 + 8 + 8;
    tables.to_common = (char *)&tables.to_common - (char *)&tables.common_bytes;
    tables.start = code;
    tables.bytes = sizeof code;
    __register_frame(&tables);

    alarm(60);
    pthread_t threads[3];
    void *failed = NULL, *result;
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, unwind, NULL);
    for (int i = 0; i < 3; i++)
        if (pthread_join(threads[i], &result) == 0 && result) failed = result;
    puts(failed ? (char *)failed : "unwound");
    return failed != NULL;
}
