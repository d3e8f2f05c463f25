// SPDX-License-Identifier: GPL-2.0
/*
 * i_mmap, whose updates are logged (see mm/ldu.c for the log).
 *
 * dup_mmap() and mmap_region() log that a VMA is to be linked,
 * unlink_file_vma_batch_process() that it is to be unlinked. What changes the
 * keys of a VMA takes i_mmap_rwsem. Between vma_prepare() and vma_complete() the
 * log is left alone: a VMA that is still in it is not in the tree, and is linked
 * by the keys that it has got.
 *
 * A VMA stays in the tree after its owner has freed it, until the log is
 * applied. Its memory is kept by vma->ldu_refs; of its fields only the keys
 * (vm_start, vm_end, vm_pgoff) and the tree's links are used then: vm_mm,
 * vm_file and vm_ops may be gone. The mapping stays until evict(), which
 * empties the log first.
 */

#include <linux/fs.h>
#include <linux/ldu.h>
#include <linux/ldu_rmap.h>
#include <linux/mm.h>

#include "internal.h"
#include "vma.h"

DEFINE_STATIC_KEY_FALSE(ldu_file_key);
/* Helpers of fs.h read it, of which modules call some. */
EXPORT_SYMBOL_GPL(ldu_file_key);

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

#ifdef CONFIG_LDU_RMAP_VERIFY
/* Whether a VMA is in the tree, once. */
static bool ldu_file_is_linked(struct ldu_root *root, struct ldu_node *node)
{
	struct vm_area_struct *this = ldu_file_vma(node), *vma;
	unsigned long first = this->vm_pgoff;
	unsigned long last = first + vma_pages(this) - 1;
	int found = 0;

	vma_interval_tree_foreach(vma, &ldu_mapping(root)->i_mmap, first, last)
		found += vma == this;
	WARN_ON_ONCE(found > 1);
	return found;
}

static unsigned long ldu_file_last(struct rb_node *rb)
{
	if (!rb)
		return 0;
	return rb_entry(rb, struct vm_area_struct,
			shared.rb)->shared.rb_subtree_last;
}

/* Whether VMAs are in their order, and each knows the last page below it. */
static bool ldu_file_check(struct ldu_root *root)
{
	struct rb_root_cached *tree = &ldu_mapping(root)->i_mmap;
	struct vm_area_struct *vma;
	unsigned long first = 0, last;
	struct rb_node *rb;

	for (rb = rb_first_cached(tree); rb; rb = rb_next(rb)) {
		vma = rb_entry(rb, struct vm_area_struct, shared.rb);
		last = max3(vma->vm_pgoff + vma_pages(vma) - 1,
			    ldu_file_last(rb->rb_left),
			    ldu_file_last(rb->rb_right));
		if (vma->vm_pgoff < first || ldu_file_last(rb) != last)
			return false;
		first = vma->vm_pgoff;
	}
	return true;
}

void ldu_file_forget(struct vm_area_struct *vma, struct address_space *mapping)
{
	if (ldu_file_enabled())
		ldu_forget(&mapping->i_ldu, &vma->ldu_file);
}

/* A VMA is freed: nobody expects it in a tree. */
void ldu_vma_check_freed(struct vm_area_struct *vma)
{
	ldu_check_freed(&vma->ldu_file);
	ldu_check_freed(&vma->ldu_anon);
}
#endif

static const struct ldu_ops ldu_file_ops = {
	.rwsem = ldu_file_rwsem,
	.begin = ldu_file_begin,
	.end = ldu_file_end,
	.apply = ldu_file_apply,
	.get = ldu_file_get,
	.put = ldu_file_put,
#ifdef CONFIG_LDU_RMAP_VERIFY
	.is_linked = ldu_file_is_linked,
	.check = ldu_file_check,
#endif
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

/*
 * The section has taken i_mmap_rwsem, and has left the log alone. It changes
 * VMAs of its own only, and walks no others.
 */
void ldu_file_begin_update(struct address_space *mapping)
{
	ldu_begin_update(&mapping->i_ldu);
}

void ldu_file_end_update(struct address_space *mapping)
{
	ldu_end_update(&mapping->i_ldu);
}

/*
 * Whether a VMA is in the log instead of the tree. The caller has its mmap_lock
 * and i_mmap_rwsem for writing.
 */
bool ldu_file_is_queued(struct vm_area_struct *vma)
{
	return ldu_is_queued(&vma->ldu_file);
}

/* Unlinks a VMA that is in the log; the caller has what it had then. */
void ldu_file_cancel(struct vm_area_struct *vma, struct address_space *mapping)
{
	ldu_cancel(&ldu_file_tree, &mapping->i_ldu, &vma->ldu_file);
}

/*
 * Returns when every walk from now on meets the VMA, and meets it after
 * another, if that is not NULL. May sleep.
 */
void ldu_file_link(struct vm_area_struct *vma, struct vm_area_struct *after,
		   struct address_space *mapping)
{
	bool is_long;

	if (vma_is_shared_maywrite(vma))
		mapping_allow_writable(mapping);
	ldu_begin();
	is_long = ldu_mark(&ldu_file_tree, &mapping->i_ldu, &vma->ldu_file,
			   after ? &after->ldu_file : NULL, true);
	ldu_settle(&ldu_file_tree, &mapping->i_ldu, is_long);
}

/* Returns when no walk meets any of the VMAs any more. May sleep. */
void ldu_file_unlink(struct vm_area_struct **vmas, int count,
		     struct address_space *mapping)
{
	bool is_long = false;
	int i;

	ldu_begin();
	for (i = 0; i < count; i++) {
		VM_WARN_ON_ONCE(vmas[i]->vm_file->f_mapping != mapping);
		if (vma_is_shared_maywrite(vmas[i]))
			mapping_unmap_writable(mapping);
		is_long |= ldu_mark(&ldu_file_tree, &mapping->i_ldu,
				    &vmas[i]->ldu_file, NULL, false);
	}
	ldu_settle(&ldu_file_tree, &mapping->i_ldu, is_long);
}

static int __init ldu_file_start(void)
{
	if (ldu_register(&ldu_file_tree))
		static_branch_enable(&ldu_file_key);
	return 0;
}
/*
 * Before other CPUs are up and processes run: so all sites of the key change
 * before the first update, and the first walk.
 */
early_initcall(ldu_file_start);
