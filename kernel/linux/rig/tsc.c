// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the rate of this machine's time stamp counter in kHz. QEMU's emulated CPUs read that
 * counter as it is, and their kernel cannot find its rate out on a busy machine.
 */
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define TRIES 100

struct moment {
	double seconds;
	unsigned long long ticks;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* Of many tries the one that was interrupted least. */
static struct moment moment(void)
{
	struct moment best = { 0 };
	double best_took = 1e9;

	for (int try = 0; try < TRIES; try++) {
		double before = now();
		unsigned long long ticks = __rdtsc();
		double took = now() - before;

		if (took < best_took) {
			best_took = took;
			best = (struct moment){ before + took / 2, ticks };
		}
	}
	return best;
}

int main(void)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	struct moment begin = moment(), end;

	nanosleep(&pause, NULL);
	end = moment();
	printf("%.0f\n", (end.ticks - begin.ticks) / (end.seconds - begin.seconds) / 1e3);
	return 0;
}
