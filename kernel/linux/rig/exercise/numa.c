// SPDX-License-Identifier: GPL-2.0
/* Pages move between two nodes, because they are told to, and because the kernel finds that they are used on the other. */
#include "exercise.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEGABYTE (1UL << 20)
#define MOVE_ALL 4 /* MPOL_MF_MOVE_ALL: also pages that several processes map */
/* Seconds within which the kernel must have found out; emulated CPUs are slow. */
#define BALANCE_MAX 200
#define PAGES_MAX 8192

static void *pages[PAGES_MAX];
static int nodes[PAGES_MAX], status[PAGES_MAX];

static size_t count_on(const struct area *area, int node, const int *wanted)
{
	size_t there = 0;

	if (area->pages > PAGES_MAX)
		fail("%zu pages are too many", area->pages);
	for (size_t at = 0; at < area->pages; at++) {
		pages[at] = area->base + at * area->page_bytes;
		nodes[at] = node;
	}
	/* Returns how many did not move, which is no error. */
	if (syscall(SYS_move_pages, 0, area->pages, pages, wanted, status, wanted ? MOVE_ALL : 0) < 0)
		fail_errno("move_pages");
	for (size_t at = 0; at < area->pages; at++)
		there += status[at] == node;
	return there;
}

size_t area_on(const struct area *area, int node)
{
	return count_on(area, node, NULL);
}

size_t area_move(const struct area *area, int node)
{
	return count_on(area, node, nodes);
}

void migrate_run(double seconds)
{
	int fd = memfd_create("migrated", 0);
	unsigned long forks, rounds = 0, moved = 0;
	struct area areas[2];
	double begin = now();

	if (fd < 0 || ftruncate(fd, 2 * MEGABYTE) < 0)
		fail_errno("memfd");
	areas[0] = area_map(6 * MEGABYTE, 4096, false, 0, -1);
	areas[1] = area_map(2 * MEGABYTE, 4096, true, 0, fd);
	forkers_start(3, areas, 2);
	for (; rounds < 4 || now() - begin < seconds; rounds++) {
		moved += area_move(&areas[0], rounds % 2);
		moved += area_move(&areas[1], rounds % 2);
		area_check(&areas[0]);
		area_check(&areas[1]);
	}
	forks = forkers_stop();
	area_check(&areas[0]);
	printf("forks=%lu rounds=%lu moved=%lu\n", forks, rounds, moved);
	if (moved < 1000)
		fail("hardly a page has moved");
}

/* Lets this process run on the CPUs of a node only. */
static void run_on(int node)
{
	char path[64];
	int first, last, fields;
	cpu_set_t set;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	file = fopen(path, "r");
	if (!file)
		fail_errno(path);
	fields = fscanf(file, "%d-%d", &first, &last);
	fclose(file);
	if (fields < 1)
		fail("%s: no CPUs", path);
	if (fields < 2)
		last = first;
	CPU_ZERO(&set);
	for (int cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		fail_errno("sched_setaffinity");
}

void balance_run(double seconds)
{
	size_t before, after = 0;
	unsigned long forks;
	struct area area, other;
	double begin = now();

	write_file("/proc/sys/kernel/numa_balancing", "1");
	run_on(0);
	area = area_map(8 * MEGABYTE, 4096, false, 0, -1);
	/* The kernel does not balance what several processes map. */
	if (madvise(area.base, 8 * MEGABYTE, MADV_DONTFORK) < 0)
		fail_errno("MADV_DONTFORK");
	before = area_on(&area, 1);
	other = area_map(MEGABYTE, 4096, false, 0, -1);
	run_on(1);
	forkers_start(1, &other, 1);
	while (now() - begin < BALANCE_MAX) {
		area_check(&area);
		after = area_on(&area, 1);
		if (now() - begin > seconds && after > before)
			break;
	}
	forks = forkers_stop();
	area_check(&area);
	printf("forks=%lu pages=%zu on_the_other_node=%zu before=%zu\n", forks, area.pages, after, before);
	if (after <= before)
		fail("the kernel has balanced nothing");
}
