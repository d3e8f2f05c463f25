// SPDX-License-Identifier: GPL-2.0
/*
 * What the process tests of lmbench do (lat_proc fork, exec and shell, bw_mmap
 * and lat_pagefault), by several workers at a time.
 *
 *	procstorm fork|exec|shell|mmap|fault WORKERS ROUNDS
 *
 * lmbench itself is not used. Prints `storm unit=NAME forks=N`.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 64

/* A program that does nothing. */
static char *dynamic = "/dynamic";

static void need(int holds, const char *what)
{
	if (!holds) {
		perror(what);
		_exit(1);
	}
}

/* A child that ends at once, or runs a program. */
static void process(char *const program[])
{
	pid_t child = fork();
	int status;

	need(child >= 0, "fork");
	if (!child) {
		if (program) {
			execv(program[0], program);
			_exit(127);
		}
		_exit(0);
	}
	need(waitpid(child, &status, 0) == child && !status, "a child");
}

static void fork_test(void)
{
	process(NULL);
}

static void exec_test(void)
{
	char *const program[] = { dynamic, NULL };

	process(program);
}

static void shell_test(void)
{
	char *const program[] = { "/bin/sh", "-c", dynamic, NULL };

	process(program);
}

/* Maps a file that all workers map, and looks at some of it. */
static void map_file(int touched)
{
	int file = open("/tmp/lmbench", O_RDONLY), page;
	volatile char *at;

	need(file >= 0, "/tmp/lmbench");
	at = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, file, 0);
	need(at != MAP_FAILED, "mmap");
	for (page = 0; page < touched; page++)
		(void)at[page * PAGE];
	munmap((void *)at, PAGES * PAGE);
	close(file);
}

static void mmap_test(void)
{
	map_file(0);
}

static void fault_test(void)
{
	map_file(PAGES);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "fork", fork_test }, { "exec", exec_test }, { "shell", shell_test },
	{ "mmap", mmap_test }, { "fault", fault_test },
};

#define TESTS (sizeof(tests) / sizeof(tests[0]))

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
	int workers, rounds, worker, round, status, is_bad = 0, file;
	double begin = now();
	size_t test;

	if (count != 4)
		return 2;
	if (getenv("DYNAMIC"))
		dynamic = getenv("DYNAMIC");
	workers = atoi(arguments[2]);
	rounds = atoi(arguments[3]);
	for (test = 0; test < TESTS; test++)
		if (!strcmp(tests[test].name, arguments[1]))
			break;
	if (test == TESTS)
		return 2;
	file = open("/tmp/lmbench", O_RDWR | O_CREAT, 0600);
	need(file >= 0 && !ftruncate(file, PAGES * PAGE), "/tmp/lmbench");
	close(file);

	for (worker = 0; worker < workers; worker++)
		if (!fork()) {
			for (round = 0; round < rounds; round++)
				tests[test].run();
			_exit(0);
		}
	while (wait(&status) > 0)
		is_bad |= status;
	printf("storm unit=%s forks=%d workers=%d seconds=%.3f %s\n",
	       arguments[1], workers * rounds, workers, now() - begin,
	       is_bad ? "BAD" : "ok");
	return is_bad != 0;
}
