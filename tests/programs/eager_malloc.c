/* A program whose allocator initialises everything that it has at its first call, as jemalloc and
 * tcmalloc do, ahead of any constructor: what is called from there may not need the allocator. The
 * library under test may not use it before `main`, either: it would find it half initialised. */
#include "case.h"

#include <dlfcn.h>
#include <threads.h>

enum { ARENA = 1 << 26 };

static pthread_mutex_t init_mutex = PTHREAD_MUTEX_INITIALIZER, arena_mutex, recursive;
static pthread_rwlock_t rwlock;
static pthread_cond_t cond;
static pthread_spinlock_t spin;
static mtx_t mtx;
static cnd_t cnd;
static pthread_key_t key;
static char *arena;
static size_t used;
static long allocations, nested, broken;
static bool is_ready, is_initialising;
static void *(*looked_up)(void), *(*by_version)(void);

static void need(int code) { broken += code != 0; }

/* Each object is initialised and used, and functions are looked up by name, of which one is not
   there to wrap. */
static void initialise(void) {
    struct timespec past = {1, 0};
    pthread_mutexattr_t attributes;
    need(pthread_mutexattr_init(&attributes));
    need(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE));
    need(pthread_mutex_init(&arena_mutex, NULL));
    need(pthread_mutex_init(&recursive, &attributes));
    need(pthread_mutex_lock(&recursive) || pthread_mutex_trylock(&recursive));
    need(pthread_mutex_unlock(&recursive) || pthread_mutex_unlock(&recursive));
    need(pthread_rwlock_init(&rwlock, NULL));
    need(pthread_rwlock_wrlock(&rwlock) || pthread_rwlock_unlock(&rwlock));
    need(pthread_cond_init(&cond, NULL));
    need(pthread_mutex_lock(&arena_mutex));
    need(pthread_cond_timedwait(&cond, &arena_mutex, &past) != ETIMEDOUT);
    need(pthread_mutex_unlock(&arena_mutex));
    need(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    need(pthread_spin_lock(&spin) || pthread_spin_unlock(&spin));
    need(mtx_init(&mtx, mtx_plain) != thrd_success);
    need(cnd_init(&cnd) != thrd_success);
    need(pthread_key_create(&key, NULL));
    looked_up = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    by_version = dlvsym(RTLD_NEXT, "pthread_cond_wait", OLDEST("GLIBC_2.3.2"));
    arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) abort();
}

void *malloc(size_t size) {
    if (!__atomic_load_n(&is_ready, __ATOMIC_ACQUIRE)) {
        if (is_initialising) { /* by the thread that initialises: nothing can be had yet */
            nested++;
            errno = ENOMEM;
            return NULL;
        }
        need(pthread_mutex_lock(&init_mutex));
        if (!is_ready) {
            is_initialising = true;
            initialise();
            is_initialising = false;
            __atomic_store_n(&is_ready, true, __ATOMIC_RELEASE);
        }
        need(pthread_mutex_unlock(&init_mutex));
    }
    need(pthread_mutex_lock(&arena_mutex));
    allocations++;
    size_t *block = (size_t *)(arena + used);
    used += (size + 31) & ~15ul;
    if (used > ARENA) abort();
    need(pthread_mutex_unlock(&arena_mutex));
    *block = size;
    return block + 2;
}

void free(void *memory) { (void)memory; }

void *calloc(size_t count, size_t size) { return malloc(count * size); }

void *realloc(void *memory, size_t size) {
    void *moved = malloc(size);
    if (memory && moved) memcpy(moved, memory, size < ((size_t *)memory)[-2] ? size : ((size_t *)memory)[-2]);
    return moved;
}

static long before_all;
static void *volatile kept; /* or the compiler, which knows malloc and free, leaves both out */
static void first(void) {
    kept = malloc(1);
    before_all = allocations;
}
__attribute__((section(".preinit_array"), used)) static void (*const first_entry)(void) = first;

static int allocate(void *unused) {
    (void)unused;
    for (int i = 0; i < 1000; i++) *(volatile char *)malloc(8) = 1;
    return 0;
}

int main(void) {
    long before = allocations;
    VALUE(before - before_all, "eager.allocations-of-constructors");
    VALUE(before_all, "eager.allocations-before-constructors");
    VALUE(nested, "eager.allocations-while-initialising");
    VALUE(broken, "eager.broken");
    HOLDS(looked_up && by_version, "eager.looked-up");
    CODE(ELSEWHERE(allocate, NULL), "eager.elsewhere");
    HOLDS(allocations >= before + 1000, "eager.counted");
    return 0;
}
