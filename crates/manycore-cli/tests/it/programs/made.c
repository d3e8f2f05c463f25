/* Code that is made at run time: two functions that take a lock each, in memory without a file, at another address in each run.
 *
 *     made map | dump | silent [DIRECTORY]  tells of it in /tmp/perf-PID.map, in DIRECTORY/jit-PID.dump, or not at all; with a
 *                                           directory it stays for a while, so that somebody may look
 *
 * Prints the process' number as it is for itself.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SIZE 64

static const char *const names[] = {"LazyCompile:*fetchRow lib/a b.js:12", "Lorg/example/Store;::putRow"};
static unsigned char *code[2];

/* A function that calls another one, with its own argument. */
static void make(unsigned char *at, void *callee)
{
    static const unsigned char pattern[] = {0x48, 0x83, 0xec, 0x08,                  /* sub rsp, 8 */
                                            0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0,      /* mov rax, callee */
                                            0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3 /* call rax; add rsp, 8; ret */};
    memcpy(at, pattern, sizeof pattern);
    memcpy(at + 6, &callee, sizeof callee);
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void write_map(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %x %s\n", (long)code[0], SIZE, "an older function at this place");
    for (int i = 0; i < 2; i++)
        fprintf(map, "%lx %x %s\n", (long)code[i], SIZE, names[i]);
    fclose(map);
}

/* As the specification of jitdump has it. The second function is moved to where it is. */
static void write_dump(const char *directory)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", directory, getpid());
    int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    struct { uint32_t magic, version, size, machine, spare, pid; uint64_t time, flags; } header =
        {0x4a695444, 1, sizeof header, EM_X86_64, 0, getpid(), now(), 0};
    write(file, &header, sizeof header);
    for (int i = 0; i < 2; i++) {
        struct { uint32_t kind, size; uint64_t time; uint32_t pid, tid; uint64_t vma, address, length, index; } load =
            {0, sizeof load + strlen(names[i]) + 1 + SIZE, now(), getpid(), getpid(), 0, 0, SIZE, i + 1};
        load.vma = load.address = i == 0 ? (uintptr_t)code[0] : 0x1000;
        write(file, &load, sizeof load);
        write(file, names[i], strlen(names[i]) + 1);
        write(file, code[i], SIZE);
    }
    struct { uint32_t kind, size; uint64_t time; uint32_t pid, tid; uint64_t vma, from, to, length, index; } moved =
        {1, sizeof moved, now(), getpid(), getpid(), (uintptr_t)code[1], 0x1000, (uintptr_t)code[1], SIZE, 2};
    write(file, &moved, sizeof moved);
    /* So it is found. */
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    close(file);
}

int main(int count, char **words)
{
    if (count < 2)
        return 2;
    unsigned char *memory =
        mmap(0, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++) {
        code[i] = memory + (getpid() % 997 + 1) * SIZE * 2 + i * SIZE;
        make(code[i], (void *)pthread_mutex_lock);
    }
    if (strcmp(words[1], "map") == 0)
        write_map();
    else if (strcmp(words[1], "dump") == 0)
        write_dump(words[2]);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_t *lock = calloc(1, sizeof *lock);
        for (int turn = 0; turn < 10 * (i + 1); turn++) {
            ((void (*)(pthread_mutex_t *))code[i])(lock);
            pthread_mutex_unlock(lock);
        }
    }
    printf("%d\n", getpid());
    fflush(stdout);
    if (count > 2)
        usleep(1500000);
    return 0;
}
