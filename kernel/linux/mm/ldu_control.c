// SPDX-License-Identifier: GPL-2.0
/*
 * Which trees have a log (see mm/ldu.c), and what it has done:
 *
 *	ldu=off|global|percpu[,file][,anon]
 *			on the command line; off if it is absent
 *	ldu_limit=N	longer logs are applied by who makes them
 *	/sys/kernel/debug/ldu
 *			counts
 */

#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/kernel.h>
#include <linux/ldu.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/string.h>

/* Whether trees have logs, and whether logs may have lists for each CPU. */
static const char * const ldu_modes[] = { "off", "global", "percpu" };
static int ldu_mode;
/* Names of trees that are to have a log; NULL: all. */
static char *ldu_wanted __initdata;

static int __init ldu_parse(char *text)
{
	char *trees = strchrnul(text, ',');
	int mode;

	for (mode = 0; mode < ARRAY_SIZE(ldu_modes); mode++)
		if (strlen(ldu_modes[mode]) == trees - text &&
		    !strncmp(text, ldu_modes[mode], trees - text))
			break;
	if (mode == ARRAY_SIZE(ldu_modes)) {
		pr_warn("ldu=%s: it is off|global|percpu[,file][,anon]\n", text);
		return 1;
	}
	ldu_mode = mode;
	ldu_wanted = *trees ? trees : NULL;
	return 1;
}
__setup("ldu=", ldu_parse);

static int __init ldu_parse_limit(char *text)
{
	unsigned int limit;

	if (kstrtouint(text, 0, &limit) || !limit) {
		pr_warn("ldu_limit=%s: it is a number, and not 0\n", text);
		return 1;
	}
	ldu_limit = limit;
	return 1;
}
__setup("ldu_limit=", ldu_parse_limit);

/* Trees that have a log. */
static const struct ldu_tree *ldu_trees[2];
static int ldu_nr_trees;

/**
 * ldu_register - asks whether a kind of tree is to have a log
 * @tree: the kind; called once for each, one after another
 *
 * Returns true if it is; its counts are shown then.
 */
bool __init ldu_register(const struct ldu_tree *tree)
{
	if (!ldu_mode || (ldu_wanted && !strstr(ldu_wanted, tree->name)))
		return false;
	if (WARN_ON(ldu_nr_trees == ARRAY_SIZE(ldu_trees)))
		return false;
	if (!strcmp(ldu_modes[ldu_mode], "percpu"))
		ldu_nr_heads = min(nr_cpu_ids, LDU_HEADS_MAX);
	ldu_trees[ldu_nr_trees++] = tree;
	return true;
}

static const char * const ldu_count_names[LDU_NR_COUNTS] = {
	[LDU_PUSH] = "push",
	[LDU_CANCEL] = "cancel",
	[LDU_SETTLE_SKIP] = "settle_skip",
	[LDU_SETTLE_WAIT] = "settle_wait",
	[LDU_DRAIN_HELPER] = "drain_helper",
	[LDU_DRAIN_SETTLE] = "drain_settle",
	[LDU_DRAIN_LIMIT] = "drain_limit",
	[LDU_DRAIN_WORKER] = "drain_worker",
	[LDU_DRAIN_RETIRE] = "drain_retire",
	[LDU_LINK] = "applied_insert",
	[LDU_UNLINK] = "applied_remove",
	[LDU_GARBAGE] = "garbage",
	[LDU_REDO] = "redo",
	[LDU_SPREAD] = "spread",
	[LDU_VERIFY] = "verified",
};

static void ldu_show_tree(struct seq_file *file, const struct ldu_tree *tree)
{
	unsigned long sum;
	int what, cpu;

	for (what = 0; what < LDU_NR_COUNTS; what++) {
		sum = 0;
		for_each_possible_cpu(cpu)
			sum += per_cpu_ptr(tree->counts, cpu)->of[what];
		seq_printf(file, "%s.%s %lu\n", tree->name,
			   ldu_count_names[what], sum);
	}
}

static int ldu_show(struct seq_file *file, void *unused)
{
	int number;

	seq_printf(file, "mode %s\nlimit %u\nlists %u\n",
		   ldu_modes[ldu_nr_trees ? ldu_mode : 0], ldu_limit,
		   ldu_nr_heads);
	for (number = 0; number < ldu_nr_trees; number++)
		ldu_show_tree(file, ldu_trees[number]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ldu);

static int __init ldu_show_start(void)
{
	debugfs_create_file("ldu", 0444, NULL, NULL, &ldu_fops);
	return 0;
}
late_initcall(ldu_show_start);
