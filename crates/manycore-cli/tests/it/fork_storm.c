/* Processes made as fast as it goes: each touches memory, maps and unmaps, writes through a pipe,
 * and ends.
 *
 *     fork_storm WORKERS FORKS        each worker makes FORKS children, one after the other
 *
 * Prints how many a second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES (64 * 1024)

static void child(int out)
{
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        _exit(1);
    for (int at = 0; at < BYTES; at += 4096)
        memory[at] = 1;
    munmap(memory, BYTES);
    _exit(write(out, "x", 1) == 1 ? 0 : 1);
}

static int worker(int forks)
{
    int ends[2];
    char byte;
    if (pipe(ends) != 0)
        return 1;
    for (int at = 0; at < forks; at++) {
        int status;
        pid_t made = fork();
        if (made == 0)
            child(ends[1]);
        if (made < 0 || read(ends[0], &byte, 1) != 1 || waitpid(made, &status, 0) != made || status != 0)
            return 1;
    }
    return 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    double start = now();
    int workers = argc > 1 ? atoi(argv[1]) : 4, forks = argc > 2 ? atoi(argv[2]) : 1000, failed = 0, status;
    for (int at = 0; at < workers; at++) {
        pid_t made = fork();
        if (made == 0)
            _exit(worker(forks));
        failed |= made < 0;
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    printf("%.0f forks a second\n", workers * forks / (now() - start));
    return failed;
}
