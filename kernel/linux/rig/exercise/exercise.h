/* SPDX-License-Identifier: GPL-2.0 */
/* What the items of `exercise` share: areas of memory with known content, and processes that fork beside them. */
#ifndef EXERCISE_H
#define EXERCISE_H

#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define AREAS_MAX 4

/* Pages whose first word says which they are. Children write to their copies of private ones. */
struct area {
	char *base;
	size_t pages;
	size_t page_bytes;
	bool is_shared;
};

/* Ends the program with status 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, with what errno says. */
_Noreturn void fail_errno(const char *what);

/* Maps an area and fills it. `fd` is -1 for anonymous memory; `flags` are further ones of mmap(). */
struct area area_map(size_t bytes, size_t page_bytes, bool is_shared, int flags, int fd);
void area_fill(const struct area *area);
/* Fails if a page is not what area_fill() has made it. */
void area_check(const struct area *area);

/* How many pages are on a node. */
size_t area_on(const struct area *area, int node);
/* Moves all pages to a node, in all processes that map them; returns how many are there. */
size_t area_move(const struct area *area, int node);

/* Processes that fork children one after another, each of which checks the areas and writes to its copies. */
void forkers_start(int count, const struct area *areas, int nr_areas);
/* Ends them; fails if a child has found an error. Returns how many children there were. */
unsigned long forkers_stop(void);

/* Memory that all processes from now on share. */
void *shared_memory(size_t bytes);
void write_file(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Seconds that have passed since some moment. */
double now(void);
/* Waits for a child; returns its status as waitpid() has it. */
int wait_for(pid_t child);

/* Has a page fail; fails unless all who map it are told, some of them forked a moment ago. `what` names its kind. */
void poison_page(char *page, const char *what);

typedef void item_run(double seconds);
item_run swap_run, migrate_run, balance_run, hugetlb_run, poison_run, uprobe_run, dax_run, split_run;

#endif
