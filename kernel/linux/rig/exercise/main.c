// SPDX-License-Identifier: GPL-2.0
/*
 * Exercises one part of memory management beside forks, and looks whether data stays whole. For the guest only.
 *
 *	exercise ITEM SECONDS
 *
 * Prints what was done, as NAME=NUMBER, and ends with status 0; or says what is wrong, and ends with status 1. An item that
 * finds its part of the kernel unused fails.
 */
#include "exercise.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Every how many pages a child writes. */
#define WRITE_STEP 5

static struct {
	volatile int is_over;
	unsigned long forks;
} *control;
static pid_t forkers[16];
static int nr_forkers;

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

void fail_errno(const char *what)
{
	fail("%s: %s", what, strerror(errno));
}

static unsigned long *word(const struct area *area, size_t page)
{
	return (unsigned long *)(area->base + page * area->page_bytes);
}

void area_fill(const struct area *area)
{
	for (size_t page = 0; page < area->pages; page++)
		word(area, page)[0] = ~page;
}

void area_check(const struct area *area)
{
	for (size_t page = 0; page < area->pages; page++)
		if (word(area, page)[0] != ~page)
			fail("page %zu of %zu has %lx, not %lx", page, area->pages, word(area, page)[0], ~page);
}

struct area area_map(size_t bytes, size_t page_bytes, bool is_shared, int flags, int fd)
{
	struct area area = { .pages = bytes / page_bytes, .page_bytes = page_bytes, .is_shared = is_shared };

	flags |= (is_shared ? MAP_SHARED : MAP_PRIVATE) | (fd < 0 ? MAP_ANONYMOUS : 0);
	area.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (area.base == MAP_FAILED)
		fail_errno("mmap");
	area_fill(&area);
	return area;
}

void *shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail_errno("mmap");
	return memory;
}

/* A child: what it finds is what its ancestors have left, and what it writes it finds again. */
static void child_work(const struct area *areas, int nr_areas)
{
	for (int at = 0; at < nr_areas; at++) {
		const struct area *area = &areas[at];

		area_check(area);
		for (size_t page = 0; !area->is_shared && page < area->pages; page += WRITE_STEP)
			word(area, page)[1] = getpid();
	}
	for (int at = 0; at < nr_areas; at++) {
		const struct area *area = &areas[at];

		for (size_t page = 0; !area->is_shared && page < area->pages; page += WRITE_STEP)
			if (word(area, page)[1] != (unsigned long)getpid())
				fail("page %zu has lost what its process wrote", page);
		area_check(area);
	}
}

static void forker(const struct area *areas, int nr_areas)
{
	while (!control->is_over) {
		pid_t child = fork();

		if (child < 0 && errno != EAGAIN && errno != ENOMEM)
			fail_errno("fork");
		if (child == 0) {
			/* Every other one has a child of its own, which outlives it. */
			if (control->forks % 2 && fork() < 0 && errno != EAGAIN && errno != ENOMEM)
				fail_errno("fork of a child");
			child_work(areas, nr_areas);
			_exit(0);
		}
		if (child > 0 && wait_for(child) != 0)
			fail("a child has failed");
		__atomic_add_fetch(&control->forks, child > 0, __ATOMIC_RELAXED);
	}
}

void forkers_start(int count, const struct area *areas, int nr_areas)
{
	if (!control)
		control = shared_memory(sizeof(*control));
	control->is_over = 0;
	control->forks = 0;
	/* Grandchildren whose parents have ended are this process' children. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (nr_forkers = 0; nr_forkers < count; nr_forkers++) {
		forkers[nr_forkers] = fork();
		if (forkers[nr_forkers] < 0)
			fail_errno("fork");
		if (forkers[nr_forkers] == 0) {
			forker(areas, nr_areas);
			_exit(0);
		}
	}
}

unsigned long forkers_stop(void)
{
	int status;

	control->is_over = 1;
	for (int at = 0; at < nr_forkers; at++)
		if (wait_for(forkers[at]) != 0)
			fail("a process that forks has failed");
	/* Grandchildren. */
	while (wait(&status) > 0)
		if (status != 0)
			fail("a grandchild has failed: status %x", status);
	if (control->forks < (unsigned long)nr_forkers)
		fail("%lu forks of %d processes", control->forks, nr_forkers);
	return control->forks;
}

int wait_for(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail_errno("waitpid");
	return status;
}

void write_file(const char *path, const char *format, ...)
{
	char text[256];
	va_list arguments;
	int fd = open(path, O_WRONLY | O_APPEND);

	if (fd < 0)
		fail_errno(path);
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (write(fd, text, strlen(text)) < 0)
		fail("%s: no `%s`: %s", path, text, strerror(errno));
	close(fd);
}

double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		item_run *run;
	} items[] = {
		{ "swap", swap_run },	    { "migrate", migrate_run }, { "balance", balance_run }, { "hugetlb", hugetlb_run },
		{ "poison", poison_run },   { "uprobe", uprobe_run },	{ "dax", dax_run },
		{ "split", split_run },
	};

	if (argc != 3 || !getenv("RIG_GUEST")) {
		fprintf(stderr, "usage, in the guest: %s ITEM SECONDS\n", argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t at = 0; at < sizeof(items) / sizeof(items[0]); at++)
		if (strcmp(argv[1], items[at].name) == 0) {
			items[at].run(atof(argv[2]));
			return 0;
		}
	fail("no such item: %s", argv[1]);
}
