// SPDX-License-Identifier: GPL-2.0
/*
 * A load like the multiuser part of AIM7, on /tmp: each user works through a
 * list of jobs in an order of its own, each job in a process of its own.
 *
 *	aimstorm USERS JOBS
 *
 * AIM7 itself is not used: jobs are written anew after what its manual says
 * that they do. Prints `storm unit=jobs forks=N`.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096
#define BLOCKS 64

static char block[BLOCK];
/* A program that does nothing. */
static const char *dynamic = "/dynamic";

static void fail(const char *what)
{
	perror(what);
	_exit(1);
}

static void need(int holds, const char *what)
{
	if (!holds)
		fail(what);
}

static void name_of(char *name, int user, const char *what)
{
	sprintf(name, "/tmp/%s.%d", what, user);
}

static void write_file(const char *name)
{
	int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600), i;

	need(file >= 0, name);
	for (i = 0; i < BLOCKS; i++)
		need(write(file, block, BLOCK) == BLOCK, "write");
	close(file);
}

/* disk_wrt, creat_clo: writes a file, and removes it. */
static void write_job(int user)
{
	char name[64];

	name_of(name, user, "w");
	write_file(name);
	unlink(name);
}

/* disk_rd, disk_cp: copies a file. */
static void copy_job(int user)
{
	char from[64], to[64], buffer[BLOCK];
	int in, out;
	ssize_t got;

	name_of(from, user, "from");
	name_of(to, user, "to");
	write_file(from);
	in = open(from, O_RDONLY);
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	need(in >= 0 && out >= 0, "copy");
	while ((got = read(in, buffer, BLOCK)) > 0)
		need(write(out, buffer, got) == got, "write");
	close(in);
	close(out);
	unlink(from);
	unlink(to);
}

/* dir_rtns: makes, renames and removes directories and links. */
static void names_job(int user)
{
	char a[64], b[64];
	int i;

	name_of(a, user, "dir");
	name_of(b, user, "moved");
	for (i = 0; i < 32; i++) {
		struct stat stat_of;

		need(!mkdir(a, 0700), a);
		need(!rename(a, b), b);
		need(!stat(b, &stat_of), b);
		need(!rmdir(b), b);
	}
}

/* fork_test: processes that do nothing. */
static void fork_job(int user)
{
	int i, status;

	(void)user;
	for (i = 0; i < 8; i++) {
		pid_t child = fork();

		need(child >= 0, "fork");
		if (!child)
			_exit(0);
		need(waitpid(child, &status, 0) == child && !status, "wait");
	}
}

/* exec_test. */
static void exec_job(int user)
{
	int i, status;

	(void)user;
	for (i = 0; i < 4; i++) {
		pid_t child = fork();

		need(child >= 0, "fork");
		if (!child) {
			execl(dynamic, dynamic, NULL);
			fail(dynamic);
		}
		need(waitpid(child, &status, 0) == child && !status, "wait");
	}
}

/* brk_test, page_test: memory that grows, is written and given back. */
static void memory_job(int user)
{
	int i;

	(void)user;
	for (i = 0; i < 16; i++) {
		char *at = sbrk(BLOCKS * BLOCK);

		need(at != (void *)-1, "sbrk");
		memset(at, i, BLOCKS * BLOCK);
		need(sbrk(-BLOCKS * BLOCK) != (void *)-1, "sbrk");
	}
}

/* shared_memory: a file that two processes map. */
static void map_job(int user)
{
	char name[64];
	int file, i, status;

	name_of(name, user, "map");
	write_file(name);
	file = open(name, O_RDWR);
	for (i = 0; i < 16; i++) {
		volatile char *at = mmap(NULL, BLOCKS * BLOCK,
					 PROT_READ | PROT_WRITE, MAP_SHARED, file,
					 0);
		pid_t child;

		need(at != MAP_FAILED, "mmap");
		at[i * BLOCK] = 1;
		child = fork();
		need(child >= 0, "fork");
		if (!child) {
			at[0] = at[i * BLOCK];
			_exit(0);
		}
		need(waitpid(child, &status, 0) == child && !status, "wait");
		munmap((void *)at, BLOCKS * BLOCK);
	}
	close(file);
	unlink(name);
}

/* pipe_cpy, stream_pipe: bytes through a pipe to a child. */
static void pipe_job(int user)
{
	char buffer[BLOCK];
	int ends[2], i, status;
	pid_t child;

	(void)user;
	need(!pipe(ends), "pipe");
	child = fork();
	need(child >= 0, "fork");
	if (!child) {
		close(ends[1]);
		while (read(ends[0], buffer, BLOCK) > 0)
			;
		_exit(0);
	}
	close(ends[0]);
	for (i = 0; i < BLOCKS; i++)
		need(write(ends[1], block, BLOCK) == BLOCK, "pipe");
	close(ends[1]);
	need(waitpid(child, &status, 0) == child && !status, "wait");
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

/* signal_test. */
static void signal_job(int user)
{
	int i;

	(void)user;
	signal(SIGUSR1, count_signal);
	for (i = 0; i < 200; i++)
		raise(SIGUSR1);
	need(signals == 200, "signals");
}

/* add_long, mul_double, sort_rtns, matrix_rtns: computes. */
static void compute_job(int user)
{
	static double a[24][24], b[24][24], c[24][24];
	int i, j, k;

	for (i = 0; i < 24; i++)
		for (j = 0; j < 24; j++)
			a[i][j] = b[j][i] = i + j + user;
	for (i = 0; i < 24; i++)
		for (j = 0; j < 24; j++)
			for (k = 0; k < 24; k++)
				c[i][j] += a[i][k] * b[k][j];
	need(c[1][1] > 0, "matrix");
}

static void (*const jobs[])(int user) = {
	write_job, copy_job, names_job, fork_job, exec_job,
	memory_job, map_job, pipe_job, signal_job, compute_job,
};

#define JOBS ((int)(sizeof(jobs) / sizeof(jobs[0])))

static void work(int user, int count)
{
	int i, status;

	for (i = 0; i < count; i++) {
		pid_t child = fork();

		need(child >= 0, "fork");
		if (!child) {
			jobs[(user * 7 + i) % JOBS](user);
			_exit(0);
		}
		need(waitpid(child, &status, 0) == child && !status, "a job");
	}
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
	int users = count > 1 ? atoi(arguments[1]) : 8;
	int each = count > 2 ? atoi(arguments[2]) : 2 * JOBS;
	int user, status, is_bad = 0;
	double begin = now();

	if (getenv("DYNAMIC"))
		dynamic = getenv("DYNAMIC");
	for (user = 0; user < users; user++)
		if (!fork()) {
			work(user, each);
			_exit(0);
		}
	while (wait(&status) > 0)
		is_bad |= status;
	printf("storm unit=jobs forks=%d users=%d seconds=%.3f %s\n",
	       users * each, users, now() - begin, is_bad ? "BAD" : "ok");
	return is_bad != 0;
}
