// SPDX-License-Identifier: GPL-2.0
/*
 * A file in persistent memory, mapped without a page cache: what is written through one mapping is read by all and by read(),
 * writing back walks the file's reverse map, and cutting the file takes pages from all who map them.
 */
#include "exercise.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096UL
#define PAGES 128UL
#define BYTES (PAGES * PAGE)
#define FILE_NAME "/tmp/dax/file"

static void look_for_dax(void)
{
	struct statx of;

	if (statx(AT_FDCWD, FILE_NAME, 0, STATX_BASIC_STATS, &of) < 0)
		fail_errno("statx");
	if (!(of.stx_attributes & STATX_ATTR_DAX))
		fail(FILE_NAME " is not mapped directly: mount its directory with -o dax");
}

/* Writes through the mapping, has it written back, and reads the file. */
static void write_back(int fd, volatile unsigned long *words, unsigned long round)
{
	unsigned long read_back;

	for (unsigned long page = round % 7; page < PAGES; page += 7) {
		words[page * (PAGE / sizeof(long)) + 2] = round;
		if (pread(fd, &read_back, sizeof(long), page * PAGE + 2 * sizeof(long)) != sizeof(long) || read_back != round)
			fail("read() finds %lx in page %lu, which has %lx", read_back, page, round);
	}
	if (msync((void *)words, BYTES, MS_SYNC) < 0)
		fail_errno("msync");
}

/* A child maps pages that are cut off and come again: it finds zeros, not what was there. */
static void cut(int fd, volatile unsigned long *words)
{
	struct {
		volatile int ready, is_cut;
	} *control = shared_memory(4096);
	volatile unsigned long *last = words + (PAGES - 1) * (PAGE / sizeof(long));
	pid_t child;
	int status;

	*last = 1;
	child = fork();
	if (child < 0)
		fail_errno("fork");
	if (child == 0) {
		if (*last != 1)
			fail("a child does not find what its parent has written");
		control->ready = 1;
		while (!control->is_cut)
			usleep(500);
		if (*last != 0)
			fail("a child finds a page that was cut off");
		_exit(0);
	}
	while (!control->ready)
		usleep(500);
	if (ftruncate(fd, BYTES / 2) < 0 || ftruncate(fd, BYTES) < 0)
		fail_errno("ftruncate");
	control->is_cut = 1;
	status = wait_for(child);
	if (status != 0)
		fail("a child of who cuts a file ends with status %x", status);
	munmap(control, 4096);
	for (unsigned long page = PAGES / 2; page < PAGES; page++)
		words[page * (PAGE / sizeof(long))] = ~page;
}

void dax_run(double seconds)
{
	int fd = open(FILE_NAME, O_RDWR | O_CREAT, 0600);
	unsigned long forks = 0, rounds = 0;
	struct area areas[2];
	double begin = now();

	if (fd < 0 || ftruncate(fd, BYTES) < 0)
		fail_errno(FILE_NAME);
	look_for_dax();
	areas[0] = area_map(BYTES, PAGE, true, 0, fd);
	areas[1] = area_map(BYTES, PAGE, false, 0, fd);
	while (rounds < 4 || now() - begin < seconds) {
		forkers_start(3, areas, 2);
		for (int at = 0; at < 20; at++)
			write_back(fd, (unsigned long *)areas[0].base, ++rounds);
		forks += forkers_stop();
		/* Children's checks would find what is cut off. */
		cut(fd, (unsigned long *)areas[0].base);
		area_check(&areas[0]);
	}
	poison_page(areas[0].base, "persistent");
	printf("forks=%lu rounds=%lu\n", forks, rounds);
}
