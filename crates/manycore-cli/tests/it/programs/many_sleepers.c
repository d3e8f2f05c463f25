/* many_sleepers PROCESSES each sleeps once in the futex call, for a millisecond, one after the
   other */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int processes = argc > 1 ? atoi(argv[1]) : 1;
    for (int at = 0; at < processes; at++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            int word = 1;
            struct timespec soon = {0, 1000000};
            syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &soon, NULL, 0);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return 0;
}
