// SPDX-License-Identifier: GPL-2.0
/*
 * VMAs of a file that are split, merged and cut right after they were mapped, while they are in the log of i_mmap, beside
 * migration of the file's pages: what is written through a mapping that a walk has missed is lost.
 */
#include "exercise.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define PAGES 16UL
#define WORKERS 4

static struct {
	volatile int is_over;
	unsigned long rounds;
} *control;

/* Writes a worker's word of some pages by a mapping, and reads them by pread(). */
static void write_and_read(int fd, char *base, size_t from, size_t to, int worker, unsigned long value)
{
	for (size_t page = from; page < to; page++)
		((volatile unsigned long *)(base + page * PAGE))[worker] = value;
	for (size_t page = from; page < to; page++) {
		unsigned long found = 0;

		if (pread(fd, &found, sizeof(found), page * PAGE + worker * sizeof(found)) != sizeof(found) || found != value)
			fail("page %zu has %lx, of %lx that was written by a mapping", page, found, value);
	}
}

static void map_at(char *at, int fd, int protection, size_t page)
{
	if (mmap(at, PAGES * PAGE, protection, MAP_SHARED | MAP_FIXED, fd, page * PAGE) == MAP_FAILED)
		fail_errno("mmap of a file");
}

static void protect(char *from, size_t pages, int protection)
{
	if (mprotect(from, pages * PAGE, protection) < 0)
		fail_errno("mprotect");
}

static void work(int fd, int worker, unsigned long round)
{
	char *base = mmap(NULL, 2 * PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long value = round << 8;
	pid_t child;

	if (base == MAP_FAILED)
		fail_errno("mmap");
	/* Two that differ, side by side. */
	map_at(base, fd, PROT_READ | PROT_WRITE, 0);
	map_at(base + PAGES * PAGE, fd, PROT_READ, PAGES);
	/* The second becomes like the first, and part of it. */
	if (round % 2)
		write_and_read(fd, base, 0, PAGES, worker, ++value);
	protect(base + PAGES * PAGE, PAGES, PROT_READ | PROT_WRITE);
	write_and_read(fd, base, 0, 2 * PAGES, worker, ++value);
	/* Split in three, and one again. */
	protect(base + 4 * PAGE, 4, PROT_READ);
	child = round % 4 == 0 ? fork() : -1;
	if (child == 0)
		_exit(0);
	write_and_read(fd, base, 8, 2 * PAGES, worker, ++value);
	protect(base + 4 * PAGE, 4, PROT_READ | PROT_WRITE);
	write_and_read(fd, base, 0, 2 * PAGES, worker, ++value);
	if (munmap(base + 6 * PAGE, 3 * PAGE) < 0)
		fail_errno("munmap");
	write_and_read(fd, base, 9, 2 * PAGES, worker, ++value);
	if (child > 0 && wait_for(child) != 0)
		fail("a child has failed");
	munmap(base, 2 * PAGES * PAGE);
}

void split_run(double seconds)
{
	int fd = memfd_create("split", 0);
	struct area area;
	pid_t workers[WORKERS];
	unsigned long moved = 0;
	double begin = now();

	control = shared_memory(4096);
	if (fd < 0 || ftruncate(fd, 2 * PAGES * PAGE) < 0)
		fail_errno("memfd");
	area = area_map(2 * PAGES * PAGE, PAGE, true, 0, fd);
	for (int worker = 0; worker < WORKERS; worker++) {
		workers[worker] = fork();
		if (workers[worker] < 0)
			fail_errno("fork");
		if (workers[worker] == 0) {
			/* The first word of a page is the area's. */
			for (unsigned long round = 0; !control->is_over; round++) {
				work(fd, 1 + worker, round);
				__atomic_add_fetch(&control->rounds, 1, __ATOMIC_RELAXED);
			}
			_exit(0);
		}
	}
	for (int node = 0; now() - begin < seconds; node = !node) {
		moved += area_move(&area, node);
		area_check(&area);
	}
	control->is_over = 1;
	for (int worker = 0; worker < WORKERS; worker++)
		if (wait_for(workers[worker]) != 0)
			fail("a process that splits has failed");
	printf("rounds=%lu on_its_node=%lu\n", control->rounds, moved);
	if (control->rounds < WORKERS || moved == 0)
		fail("hardly anything was split or moved");
}
