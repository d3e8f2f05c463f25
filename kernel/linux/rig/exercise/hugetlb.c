// SPDX-License-Identifier: GPL-2.0
/*
 * Huge TLB pages, whose VMAs are linked without a log: copies of private ones, a child that loses its page to its parent, page
 * tables that processes share, and files that shrink.
 */
#include "exercise.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define POOL 24
/* Page tables are shared by mappings that cover this much, aligned. */
#define GIGABYTE (1UL << 30)
#define SHARED_AT ((void *)(512 * GIGABYTE))

static long meminfo(const char *name)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	long value = -1;

	if (!file)
		fail_errno("/proc/meminfo");
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			value = atol(strchr(line, ':') + 1);
	fclose(file);
	if (value < 0)
		fail("/proc/meminfo has no %s: the kernel lacks the feature", name);
	return value;
}

static unsigned long copies(double seconds)
{
	struct area area = area_map(2 * HUGE, HUGE, false, MAP_HUGETLB, -1);
	double begin = now();
	unsigned long forks;

	forkers_start(2, &area, 1);
	while (now() - begin < seconds)
		area_check(&area);
	forks = forkers_stop();
	area_check(&area);
	munmap(area.base, 2 * HUGE);
	return forks;
}

/* The pool is empty when a parent needs a copy of its own page: the child loses the page, and is killed at its next look. */
static void unmap_child(void)
{
	long pages = meminfo("HugePages_Free");
	struct area area = area_map(pages * HUGE, HUGE, false, MAP_HUGETLB, -1);
	volatile int *may_look = shared_memory(sizeof(int));
	pid_t child = fork();
	int status;

	if (child < 0)
		fail_errno("fork");
	if (child == 0) {
		while (!*may_look)
			usleep(1000);
		area_check(&area);
		_exit(0);
	}
	/* The parent's copies: there is no page for them. */
	for (size_t page = 0; page < area.pages; page++)
		((volatile unsigned long *)(area.base + page * HUGE))[1] = 1;
	*may_look = 1;
	status = wait_for(child);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS)
		fail("a child whose page was taken ends with status %x", status);
	area_check(&area);
	munmap(area.base, pages * HUGE);
}

/* Children map a file where the parent does, so that they share its page table; the file is punched and cut under them. */
static void share_tables(unsigned long *rounds)
{
	int fd = open("/tmp/huge/shared", O_RDWR | O_CREAT, 0600);
	volatile unsigned long *page;
	pid_t children[3];
	struct {
		volatile int looked, may_look, looked_again;
	} *control = shared_memory(4096);

	if (fd < 0 || ftruncate(fd, GIGABYTE) < 0)
		fail_errno("/tmp/huge/shared");
	page = mmap(SHARED_AT, GIGABYTE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, 0);
	if (page == MAP_FAILED)
		fail_errno("mmap of a gigabyte");
	page[0] = 1;
	page[HUGE / sizeof(*page)] = 2;
	for (int at = 0; at < 3; at++) {
		children[at] = fork();
		if (children[at] < 0)
			fail_errno("fork");
		if (children[at] == 0) {
			if (page[0] != 1 || page[HUGE / sizeof(*page)] != 2)
				fail("a child finds another page");
			__atomic_add_fetch(&control->looked, 1, __ATOMIC_SEQ_CST);
			while (!control->may_look)
				usleep(1000);
			if (page[0] != 0 || page[HUGE / sizeof(*page)] != 2)
				fail("a child finds a page that was punched out");
			__atomic_add_fetch(&control->looked_again, 1, __ATOMIC_SEQ_CST);
			while (control->may_look == 1)
				usleep(1000);
			/* It was cut off. */
			page[HUGE / sizeof(*page)] = 3;
			_exit(0);
		}
	}
	while (control->looked < 3)
		usleep(1000);
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HUGE) < 0)
		fail_errno("fallocate");
	control->may_look = 1;
	while (control->looked_again < 3)
		usleep(1000);
	if (ftruncate(fd, HUGE) < 0)
		fail_errno("ftruncate");
	control->may_look = 2;
	for (int at = 0; at < 3; at++) {
		int status = wait_for(children[at]);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS)
			fail("a child that writes behind the file's end ends with status %x", status);
	}
	munmap((void *)page, GIGABYTE);
	munmap(control, 4096);
	close(fd);
	unlink("/tmp/huge/shared");
	++*rounds;
}

void hugetlb_run(double seconds)
{
	unsigned long forks, rounds = 0;
	double begin;

	write_file("/proc/sys/vm/nr_hugepages", "%d", POOL);
	if (meminfo("HugePages_Total") != POOL)
		fail("there are %ld of %d huge pages", meminfo("HugePages_Total"), POOL);
	mkdir("/tmp/huge", 0755);
	if (mount("none", "/tmp/huge", "hugetlbfs", 0, NULL) < 0)
		fail_errno("mount of hugetlbfs");
	forks = copies(seconds / 2);
	unmap_child();
	begin = now();
	do
		share_tables(&rounds);
	while (now() - begin < seconds / 2);
	printf("forks=%lu shared_rounds=%lu\n", forks, rounds);
	if (meminfo("HugePages_Free") != POOL)
		fail("of %d huge pages %ld are free", POOL, meminfo("HugePages_Free"));
	umount("/tmp/huge");
	write_file("/proc/sys/vm/nr_hugepages", "0");
}
