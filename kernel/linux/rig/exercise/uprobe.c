// SPDX-License-Identifier: GPL-2.0
/*
 * Probes in programs: who was forked just before a probe is set hits it, and who was just before it goes does not any more.
 * Setting walks the reverse map of the program's file; processes map that by a log.
 */
#include "exercise.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define CHILDREN 4
#define CALLS 50
#define EVENTS "/sys/kernel/tracing/uprobe_events"
#define ENABLE "/sys/kernel/tracing/events/uprobes/called/enable"

static struct {
	volatile int ready, round, done;
} *control;

/* What is probed. */
__attribute__((noinline, noclone)) int probed(int x)
{
	static volatile int calls;

	return x + ++calls;
}

/* Where in this program's file the function is. */
static unsigned long file_offset(void)
{
	unsigned long address = (unsigned long)probed, begin, end, offset;
	FILE *file = fopen("/proc/self/maps", "r");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 && begin <= address && address < end) {
			fclose(file);
			return address - begin + offset;
		}
	fail("/proc/self/maps has no line for a function of this program");
}

static long hits(void)
{
	FILE *file = fopen("/sys/kernel/tracing/uprobe_profile", "r");
	char line[256];
	long count = 0;

	if (!file)
		fail_errno("uprobe_profile");
	/* A line: file, event, hits. */
	while (fgets(line, sizeof(line), file))
		if (strstr(line, "called"))
			count += atol(strstr(line, "called") + strlen("called"));
	fclose(file);
	return count;
}

static void child(void)
{
	__atomic_add_fetch(&control->ready, 1, __ATOMIC_SEQ_CST);
	for (int round = 1; round <= 2; round++) {
		while (control->round < round)
			usleep(500);
		for (int call = 0; call < CALLS; call++)
			probed(call);
		__atomic_add_fetch(&control->done, 1, __ATOMIC_SEQ_CST);
	}
	_exit(0);
}

static void expect(long before, long calls, const char *when)
{
	if (hits() - before != calls)
		fail("%ld of %ld calls %s were counted", hits() - before, calls, when);
}

/* Children that are there when the probe is set, and when it goes. */
static void probe_once(void)
{
	pid_t children[CHILDREN];
	long before = hits();

	memset((void *)control, 0, sizeof(*control));
	for (int at = 0; at < CHILDREN; at++) {
		children[at] = fork();
		if (children[at] < 0)
			fail_errno("fork");
		if (children[at] == 0)
			child();
	}
	while (control->ready < CHILDREN)
		usleep(500);
	write_file(ENABLE, "1");
	control->round = 1;
	while (control->done < CHILDREN)
		usleep(500);
	expect(before, CHILDREN * CALLS, "after a probe was set");
	/* One that is forked while the probe is there. */
	if (wait_for(fork() ?: (probed(1), _exit(0), 0)) != 0)
		fail("a child of a probed process has failed");
	expect(before, CHILDREN * CALLS + 1, "of a child too");
	write_file(ENABLE, "0");
	before = hits();
	control->round = 2;
	for (int at = 0; at < CHILDREN; at++)
		if (wait_for(children[at]) != 0)
			fail("a probed process has failed");
	expect(before, 0, "after the probe had gone");
}

void uprobe_run(double seconds)
{
	unsigned long forks, rounds = 0;
	struct area area = area_map(64 * 4096, 4096, false, 0, -1);
	double begin = now();

	mount("none", "/sys/kernel/tracing", "tracefs", 0, NULL);
	control = shared_memory(4096);
	write_file(EVENTS, "p:uprobes/called /exercise:0x%lx", file_offset());
	forkers_start(2, &area, 1);
	do {
		probe_once();
		rounds++;
	} while (now() - begin < seconds);
	forks = forkers_stop();
	write_file(EVENTS, "-:uprobes/called");
	printf("forks=%lu probes=%lu\n", forks, rounds);
}
