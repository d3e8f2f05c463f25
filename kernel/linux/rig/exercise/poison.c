// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that fails: each process that maps a page is told, also one that was forked a moment ago, whose VMAs are in a log
 * only; and pages that are taken out of use while they are sound lose nothing.
 */
#include "exercise.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif
#define CHILDREN 6
/* Pages that are taken out of use, at most: they do not come back. */
#define SOFT_MAX 2000
#define PAGE 4096UL
#define AREA (64 * PAGE)
/* Seconds within which children must be told. */
#define TOLD_MAX 60

static struct {
	volatile int ready, told;
	char *volatile address;
	/* A page; more, if it is mapped at several places side by side, of which a process is told one. */
	size_t bytes;
} *control;

/* Told of an error in memory that it maps. */
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	/* At once (by early kill), or when it looks. */
	if (info->si_code != BUS_MCEERR_AO && info->si_code != BUS_MCEERR_AR)
		_exit(3);
	if ((char *)info->si_addr < control->address || (char *)info->si_addr >= control->address + control->bytes)
		_exit(4);
	__atomic_add_fetch(&control->told, 1, __ATOMIC_SEQ_CST);
	_exit(0);
}

/* Has the page in its page table, and does not look at it again. */
static _Noreturn void be_told(void)
{
	double begin = now();

	(void)*(volatile char *)control->address;
	prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0);
	__atomic_add_fetch(&control->ready, 1, __ATOMIC_SEQ_CST);
	while (now() - begin < TOLD_MAX)
		usleep(1000);
	_exit(6);
}

/* Forks those who are to be told, has the page fail, and looks at it, if that does not end it already. */
static _Noreturn void fail_page(char *page)
{
	struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	double begin = now();

	sigaction(SIGBUS, &action, NULL);
	prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_LATE, 0, 0);
	for (int at = 0; at < CHILDREN; at++) {
		pid_t child = fork();

		if (child < 0)
			_exit(5);
		if (child == 0)
			be_told();
	}
	while (control->ready < CHILDREN)
		usleep(1000);
	if (madvise(page, PAGE, MADV_HWPOISON) < 0)
		_exit(7);
	while (control->told < CHILDREN && now() - begin < TOLD_MAX)
		usleep(1000);
	*(volatile char *)page = 1;
	_exit(9);
}

/* The page at the start of these bytes, in all of which it is mapped. */
static void poison_at(char *page, size_t bytes, const char *what)
{
	int status, wrong = 0;
	pid_t first;

	if (!control)
		control = shared_memory(4096);
	control->ready = control->told = 0;
	control->address = page;
	control->bytes = bytes;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	first = fork();
	if (first < 0)
		fail_errno("fork");
	if (first == 0)
		fail_page(page);
	while (wait(&status) > 0)
		wrong |= status;
	if (wrong || control->told != CHILDREN + 1)
		fail("%s: %d of %d processes that map a failed page were told, status %x", what, control->told, CHILDREN + 1, wrong);
}

void poison_page(char *page, const char *what)
{
	poison_at(page, PAGE, what);
}

/* A page that is sound goes elsewhere, beside forks. */
static unsigned long soft_offline(double seconds, unsigned long *pages)
{
	struct area area = area_map(AREA, PAGE, false, 0, -1);
	double begin = now();
	unsigned long forks;

	forkers_start(2, &area, 1);
	do {
		char *page = area.base + *pages % area.pages * PAGE;

		/* A page that is being copied or moved is busy. */
		if (madvise(page, PAGE, MADV_SOFT_OFFLINE) == 0)
			++*pages;
		else if (errno != EBUSY && errno != EIO && errno != EAGAIN)
			fail_errno("MADV_SOFT_OFFLINE");
		area_check(&area);
	} while (*pages < SOFT_MAX && now() - begin < seconds);
	forks = forkers_stop();
	area_check(&area);
	munmap(area.base, AREA);
	return forks;
}

/* Pages of equal content become one, which has no reverse map of its own kind. */
static void merge(struct area *area)
{
	double begin = now();
	char text[32] = "";

	if (madvise(area->base, AREA, MADV_MERGEABLE) < 0)
		fail_errno("MADV_MERGEABLE");
	for (size_t page = 0; page < area->pages; page++)
		memset(area->base + page * PAGE, 0x5a, PAGE);
	write_file("/sys/kernel/mm/ksm/pages_to_scan", "1000");
	write_file("/sys/kernel/mm/ksm/run", "1");
	while (atol(text) < (long)area->pages / 2) {
		FILE *file = fopen("/sys/kernel/mm/ksm/pages_sharing", "r");

		if (!file || !fgets(text, sizeof(text), file) || now() - begin > TOLD_MAX)
			fail("no pages were merged");
		fclose(file);
		usleep(20000);
	}
	write_file("/sys/kernel/mm/ksm/run", "0");
}

void poison_run(double seconds)
{
	unsigned long forks, soft = 0, hard = 0;
	int fd = memfd_create("poisoned", 0);
	struct area anonymous, file, merged;
	double begin = now();

	forks = soft_offline(seconds / 2, &soft);
	if (fd < 0 || ftruncate(fd, AREA) < 0)
		fail_errno("memfd");
	anonymous = area_map(AREA, PAGE, false, 0, -1);
	file = area_map(AREA, PAGE, true, 0, fd);
	for (; hard < 16 && (hard < 4 || now() - begin < seconds); hard++) {
		poison_page(anonymous.base + hard * PAGE, "anonymous");
		poison_page(file.base + hard * PAGE, "file");
	}
	merged = area_map(AREA, PAGE, false, 0, -1);
	merge(&merged);
	poison_at(merged.base, AREA, "merged");
	printf("forks=%lu soft_offlined=%lu poisoned=%lu\n", forks, soft, 2 * hard + 1);
	if (soft == 0)
		fail("no page could be taken out of use");
}
