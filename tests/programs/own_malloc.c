/* A program with an allocator of its own that locks mutexes, as jemalloc and tcmalloc do: whatever
 * the library under test or libc allocates, even while a first lock starts the library, comes back
 * here and locks again. */
#include "case.h"

#include <dlfcn.h>

enum { CLASSES = 40, SMALLEST = 32 };

/* What is in front of each block. */
struct header {
    struct header *next;
    size_t size_class;
};

static pthread_mutex_t class_mutex[CLASSES], chunk_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t counter_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct header *free_blocks[CLASSES];
static char *chunk, *chunk_end;
static long allocations, broken;

static struct header *fresh(size_t bytes) {
    if (pthread_mutex_lock(&chunk_mutex) != 0) broken++;
    if (!chunk || chunk + bytes > chunk_end) {
        size_t size = bytes > 1 << 22 ? bytes : 1 << 22;
        chunk = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED) abort();
        chunk_end = chunk + size;
    }
    struct header *block = (struct header *)chunk;
    chunk += bytes;
    if (pthread_mutex_unlock(&chunk_mutex) != 0) broken++;
    return block;
}

static void count_allocation(void) {
    if (pthread_mutex_lock(&counter_mutex) != 0 || pthread_mutex_lock(&counter_mutex) != 0) broken++;
    allocations++;
    if (pthread_mutex_unlock(&counter_mutex) != 0 || pthread_mutex_unlock(&counter_mutex) != 0) broken++;
}

void *malloc(size_t size) {
    size_t size_class = 0;
    while (((size_t)SMALLEST << size_class) < size + sizeof(struct header)) size_class++;
    if (pthread_mutex_lock(&class_mutex[size_class]) != 0) broken++;
    struct header *block = free_blocks[size_class];
    if (block) free_blocks[size_class] = block->next;
    if (pthread_mutex_unlock(&class_mutex[size_class]) != 0) broken++;
    if (!block) block = fresh((size_t)SMALLEST << size_class);
    block->size_class = size_class;
    count_allocation();
    return block + 1;
}

void free(void *memory) {
    if (!memory) return;
    struct header *block = (struct header *)memory - 1;
    size_t size_class = block->size_class;
    pthread_mutex_lock(&class_mutex[size_class]);
    block->next = free_blocks[size_class];
    free_blocks[size_class] = block;
    pthread_mutex_unlock(&class_mutex[size_class]);
}

void *calloc(size_t count, size_t size) {
    void *memory = malloc(count * size);
    /* Not memset of a fresh block, which compilers take for calloc. */
    for (volatile char *byte = memory; byte < (char *)memory + count * size; byte++) *byte = 0;
    return memory;
}

size_t malloc_usable_size(void *memory) {
    return memory ? ((size_t)SMALLEST << ((struct header *)memory - 1)->size_class) - sizeof(struct header) : 0;
}

void *realloc(void *memory, size_t size) {
    if (memory && malloc_usable_size(memory) >= size) return memory;
    void *larger = malloc(size);
    if (memory) memcpy(larger, memory, malloc_usable_size(memory));
    free(memory);
    return larger;
}

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long lost;

static void allocate(long index) {
    for (int i = 1; i <= scaled(200); i++) {
        size_t size = (size_t)(i * 7 % 3000 + 1);
        unsigned char *memory = malloc(size);
        memset(memory, (int)index, size);
        sched_yield();
        for (size_t byte = 0; byte < size; byte++)
            if (memory[byte] != (unsigned char)index) __atomic_add_fetch(&lost, 1, __ATOMIC_RELAXED);
        free(memory);
    }
}

static int allocate_in_child(void *unused) {
    (void)unused;
    crew(2, allocate);
    return lost != 0 || broken != 0;
}

static void hold_all(void) {
    for (int i = 0; i < CLASSES; i++) pthread_mutex_lock(&class_mutex[i]);
    pthread_mutex_lock(&chunk_mutex);
}

static void release_all(void) {
    pthread_mutex_unlock(&chunk_mutex);
    for (int i = CLASSES; i-- > 0;) pthread_mutex_unlock(&class_mutex[i]);
}

/* The child may not unlock the recursive mutex of its parent; allocators make such locks anew. */
static void renew_in_child(void) {
    pthread_mutex_t fresh_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    counter_mutex = fresh_mutex;
    release_all();
}

__attribute__((constructor)) static void in_constructor(void) {
    HOLDS(allocations >= 0 && broken == 0, "own-malloc.constructor");
    free(malloc(100));
}

int main(void) {
    crew(4, allocate);
    VALUE(lost, "own-malloc.bytes-lost");
    VALUE(broken, "own-malloc.locks-broken");
    HOLDS(allocations >= 4 * scaled(200), "own-malloc.counted");
    HOLDS(dlsym(RTLD_DEFAULT, "no_such_function") == NULL && dlerror() != NULL, "own-malloc.dlsym-fails");
    void *library = dlopen(getenv("CASE_LIBRARY"), RTLD_NOW);
    HOLDS(library && dlsym(library, "library_call"), "own-malloc.dlopen");
    struct timespec soon = after_ms(CLOCK_REALTIME, 2);
    pthread_mutex_lock(&mutex);
    CODE(pthread_cond_timedwait(&cond, &mutex, &soon), "own-malloc.timedwait");
    CODE(pthread_mutex_unlock(&mutex), "own-malloc.unlock");
    CODE(pthread_atfork(hold_all, release_all, renew_in_child), "own-malloc.atfork");
    VALUE(IN_CHILD(allocate_in_child, NULL), "own-malloc.child");
    crew(3, allocate);
    VALUE(lost + broken, "own-malloc.after-fork");
    return 0;
}
