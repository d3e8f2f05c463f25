/* Locks that are made by calls whose frames are not alike: of a size that is known when they run,
 * with an address that is rounded, and interrupted by a signal, whose handler has a stack of its
 * own. */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdlib.h>

/* The compiler may not end a function with a jump.
 * SAFETY: the template is empty, so no register and no memory changes. */
#define STAYS __asm__ volatile("" ::: "memory")

/* Of different sizes, so that the compiler does not take them for one. */
#define MAKER(name, spare)                                      \
    __attribute__((noinline)) static void name(void) {          \
        pthread_mutex_t *mutex = malloc(sizeof *mutex + spare); \
        pthread_mutex_init(mutex, NULL);                        \
        pthread_mutex_lock(mutex);                              \
        pthread_mutex_unlock(mutex);                            \
        STAYS;                                                  \
    }
MAKER(make_in_variable, 1)
MAKER(make_in_aligned, 2)
MAKER(make_in_handler, 3)

__attribute__((noinline)) static void use(void *place) {
    /* SAFETY: the template is empty, so no register and no memory changes; the address is given for
       the compiler alone, which then keeps the memory. */
    __asm__ volatile("" ::"r"(place) : "memory");
}

__attribute__((noinline)) static void variable(int bytes) {
    use(alloca(bytes));
    make_in_variable();
    STAYS;
}

__attribute__((noinline)) static void aligned(int bytes) {
    alignas(256) char room[300];
    use(room);
    use(alloca(bytes));
    make_in_aligned();
    use(room);
}

static void handler(int signal) {
    (void)signal;
    make_in_handler();
    STAYS;
}

__attribute__((noinline)) static void interrupted(void) {
    raise(SIGUSR1);
    STAYS;
}

int main(int argc, char **argv) {
    (void)argv;
    variable(argc * 100);
    aligned(argc * 100);
    /* Above the frames that are interrupted. */
    char room[1 << 16];
    stack_t above = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&above, NULL);
    sigaction(SIGUSR1, &action, NULL);
    interrupted();
    return 0;
}
