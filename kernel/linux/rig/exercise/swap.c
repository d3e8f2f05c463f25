// SPDX-License-Identifier: GPL-2.0
/* Pages go out to swap and come back, in processes that share them: reclaim walks reverse maps. */
#include "exercise.h"

#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define MEGABYTE (1UL << 20)
/*
 * What the processes may have in memory, and what they use. With memory.max, which nobody may
 * exceed for a moment, one of them is killed now and then, with logs and without.
 */
#define LIMIT (12 * MEGABYTE)
#define ANONYMOUS (12 * MEGABYTE)
#define SHARED (3 * MEGABYTE)

void swap_run(double seconds)
{
	unsigned long out = 0, used;
	struct rusage usage;
	struct sysinfo memory;
	struct area areas[2];
	unsigned long forks, rounds = 0;
	double begin = now();

	mkdir("/tmp/cgroup", 0755);
	mount("none", "/tmp/cgroup", "cgroup2", 0, NULL);
	write_file("/tmp/cgroup/cgroup.subtree_control", "+memory");
	mkdir("/tmp/cgroup/swap", 0755);
	write_file("/tmp/cgroup/swap/memory.high", "%lu", LIMIT);
	write_file("/tmp/cgroup/swap/cgroup.procs", "%d", getpid());

	areas[0] = area_map(ANONYMOUS, 4096, false, 0, -1);
	areas[1] = area_map(SHARED, 4096, true, 0, -1);
	forkers_start(3, areas, 2);
	for (; rounds == 0 || now() - begin < seconds; rounds++) {
		area_check(&areas[0]);
		area_check(&areas[1]);
		if (sysinfo(&memory) < 0)
			fail_errno("sysinfo");
		used = (memory.totalswap - memory.freeswap) * memory.mem_unit / 4096;
		if (used > out)
			out = used;
	}
	/* So that what comes has room, and the group can be left. */
	write_file("/tmp/cgroup/swap/memory.high", "max");
	forks = forkers_stop();
	area_check(&areas[0]);
	area_check(&areas[1]);
	write_file("/tmp/cgroup/cgroup.procs", "%d", getpid());
	getrusage(RUSAGE_SELF, &usage);
	printf("forks=%lu rounds=%lu pages_out=%lu pages_in=%ld\n", forks, rounds, out, usage.ru_majflt);
	if (out < 100 || usage.ru_majflt < 100)
		fail("hardly a page was swapped");
}
