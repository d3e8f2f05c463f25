// SPDX-License-Identifier: GPL-2.0
/*
 * Reverse maps whose updates are logged (see mm/ldu.c for the log).
 *
 * Of i_mmap these are logged: dup_mmap() and mmap_region() link VMAs,
 * unlink_file_vma_batch_process() unlinks them. What changes the keys of a VMA
 * that is in the tree takes i_mmap_rwsem, which empties the log.
 *
 * A VMA stays in the tree after its owner has freed it, until the log is
 * applied. Its memory is kept by vma->ldu_refs; of its fields only the keys
 * (vm_start, vm_end, vm_pgoff) and the tree's links are used then: vm_mm,
 * vm_file and vm_ops may be gone. The mapping stays until evict(), which
 * empties the log first.
 */

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/ldu.h>
#include <linux/ldu_rmap.h>
#include <linux/mm.h>
#include <linux/seq_file.h>

#include "internal.h"
#include "vma.h"

DEFINE_STATIC_KEY_FALSE(ldu_file_key);

static struct address_space *ldu_mapping(struct ldu_root *root)
{
	return container_of(root, struct address_space, i_ldu);
}

static struct vm_area_struct *ldu_file_vma(struct ldu_node *node)
{
	return container_of(node, struct vm_area_struct, ldu_file);
}

static struct rw_semaphore *ldu_file_rwsem(struct ldu_root *root)
{
	return &ldu_mapping(root)->i_mmap_rwsem;
}

static void ldu_file_begin(struct ldu_root *root)
{
	flush_dcache_mmap_lock(ldu_mapping(root));
}

static void ldu_file_end(struct ldu_root *root)
{
	flush_dcache_mmap_unlock(ldu_mapping(root));
}

static void ldu_file_apply(struct ldu_root *root, struct ldu_node *node,
			   bool link)
{
	struct rb_root_cached *tree = &ldu_mapping(root)->i_mmap;

	if (link)
		vma_interval_tree_insert(ldu_file_vma(node), tree);
	else
		vma_interval_tree_remove(ldu_file_vma(node), tree);
}

static void ldu_file_get(struct ldu_node *node)
{
	atomic_inc(&ldu_file_vma(node)->ldu_refs);
}

static void ldu_file_put(struct ldu_node *node)
{
	vm_area_free(ldu_file_vma(node));
}

static const struct ldu_ops ldu_file_ops = {
	.rwsem = ldu_file_rwsem,
	.begin = ldu_file_begin,
	.end = ldu_file_end,
	.apply = ldu_file_apply,
	.get = ldu_file_get,
	.put = ldu_file_put,
};

static DEFINE_PER_CPU(struct ldu_counts, ldu_file_counts);
static struct ldu_tree ldu_file_tree =
	LDU_TREE_INIT(ldu_file_tree, "file", &ldu_file_ops, &ldu_file_counts);

void ldu_file_init(struct address_space *mapping)
{
	ldu_root_init(&mapping->i_ldu);
}

/* The mapping is about to go away; nobody maps it. */
void ldu_file_retire(struct address_space *mapping)
{
	ldu_retire(&ldu_file_tree, &mapping->i_ldu);
}

bool ldu_file_is_pending(struct address_space *mapping)
{
	return ldu_is_pending(&mapping->i_ldu);
}
EXPORT_SYMBOL_GPL(ldu_file_is_pending);

void ldu_file_write_locked(struct address_space *mapping)
{
	ldu_write_locked(&ldu_file_tree, &mapping->i_ldu);
}
EXPORT_SYMBOL_GPL(ldu_file_write_locked);

void ldu_file_read_locked(struct address_space *mapping)
{
	ldu_read_locked(&ldu_file_tree, &mapping->i_ldu);
}
EXPORT_SYMBOL_GPL(ldu_file_read_locked);

bool ldu_file_read_trylocked(struct address_space *mapping)
{
	return ldu_read_trylocked(&ldu_file_tree, &mapping->i_ldu);
}
EXPORT_SYMBOL_GPL(ldu_file_read_trylocked);

/* The section changes VMAs of its own only, and walks no others. */
void ldu_file_begin_update(struct address_space *mapping)
{
	ldu_begin_update(&mapping->i_ldu);
}

void ldu_file_end_update(struct address_space *mapping)
{
	ldu_end_update(&mapping->i_ldu);
}

/* Returns when every walk from now on meets the VMA. May sleep. */
void ldu_file_link(struct vm_area_struct *vma, struct address_space *mapping)
{
	bool is_long;

	if (vma_is_shared_maywrite(vma))
		mapping_allow_writable(mapping);
	is_long = ldu_mark(&ldu_file_tree, &mapping->i_ldu, &vma->ldu_file,
			   true);
	ldu_settle(&ldu_file_tree, &mapping->i_ldu, is_long);
}

/* Returns when no walk meets any of the VMAs any more. May sleep. */
void ldu_file_unlink(struct vm_area_struct **vmas, int count,
		     struct address_space *mapping)
{
	bool is_long = false;
	int i;

	for (i = 0; i < count; i++) {
		VM_WARN_ON_ONCE(vmas[i]->vm_file->f_mapping != mapping);
		if (vma_is_shared_maywrite(vmas[i]))
			mapping_unmap_writable(mapping);
		is_long |= ldu_mark(&ldu_file_tree, &mapping->i_ldu,
				    &vmas[i]->ldu_file, false);
	}
	ldu_settle(&ldu_file_tree, &mapping->i_ldu, is_long);
}

void ldu_vma_init(struct vm_area_struct *vma)
{
	atomic_set(&vma->ldu_refs, 1);
	ldu_node_init(&vma->ldu_file);
}

/* Whether others may still look at the VMA, under RCU: see ldu_push(). */
bool ldu_vma_was_logged(struct vm_area_struct *vma)
{
	return vma->ldu_file.ordinal;
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
};

static int ldu_show(struct seq_file *file, void *unused)
{
	const struct ldu_tree *tree = &ldu_file_tree;
	unsigned long sum;
	int what, cpu;

	seq_printf(file, "mode %s\nlimit %u\n",
		   ldu_file_enabled() ? "global,file" : "off", ldu_limit);
	for (what = 0; what < LDU_NR_COUNTS; what++) {
		sum = 0;
		for_each_possible_cpu(cpu)
			sum += per_cpu_ptr(tree->counts, cpu)->of[what];
		seq_printf(file, "%s.%s %lu\n", tree->name,
			   ldu_count_names[what], sum);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ldu);

static bool ldu_wanted __initdata;

static int __init ldu_parse(char *text)
{
	if (!strcmp(text, "off")) {
		ldu_wanted = false;
	} else if (!strcmp(text, "global") || !strcmp(text, "global,file")) {
		ldu_wanted = true;
	} else {
		pr_warn("ldu=%s: it is off or global[,file]\n", text);
		return 0;
	}
	return 1;
}
__setup("ldu=", ldu_parse);

static int __init ldu_parse_limit(char *text)
{
	unsigned int limit;

	if (kstrtouint(text, 0, &limit) || !limit) {
		pr_warn("ldu_limit=%s: it is a number, and not 0\n", text);
		return 0;
	}
	ldu_limit = limit;
	return 1;
}
__setup("ldu_limit=", ldu_parse_limit);

static int __init ldu_start(void)
{
	if (ldu_wanted)
		static_branch_enable(&ldu_file_key);
	debugfs_create_file("ldu", 0444, NULL, NULL, &ldu_fops);
	return 0;
}
late_initcall(ldu_start);
