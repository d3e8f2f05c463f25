/* What programs that expect have in common. Prints what does not hold. */
#include <pthread.h>
#include <stdio.h>

static int failed;

#define EXPECT(expected, call)                                                                  \
    do {                                                                                        \
        long got_ = (long)(call);                                                               \
        if (got_ != (long)(expected)) {                                                         \
            failed = 1;                                                                         \
            printf("%d: %s: expected %ld, got %ld\n", __LINE__, #call, (long)(expected), got_); \
        }                                                                                       \
    } while (0)

static void run(void *(*work)(void *), void *data)
{
    pthread_t thread;
    EXPECT(0, pthread_create(&thread, NULL, work, data));
    EXPECT(0, pthread_join(thread, NULL));
}
