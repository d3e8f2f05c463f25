// SPDX-License-Identifier: GPL-2.0
/*
 * The trees of anon_vmas, whose updates are logged (see mm/ldu.c for the log).
 *
 * anon_vma_fork() logs that all chains of a VMA are to be linked, and
 * unlink_anon_vmas_at_exit() that they are to be unlinked: one node for each
 * VMA, in one log for all trees that share a root's lock, since all chains of a
 * VMA do. Until the log is applied a chain is in no tree, but counts as one of
 * its anon_vma, which it keeps.
 */

#include <linux/ldu.h>
#include <linux/ldu_rmap.h>
#include <linux/mm.h>
#include <linux/rmap.h>

#include "internal.h"

DEFINE_STATIC_KEY_FALSE(ldu_anon_key);

static struct anon_vma *ldu_anon_vma(struct ldu_root *root)
{
	return container_of(root, struct anon_vma, ldu);
}

static struct vm_area_struct *ldu_anon_node(struct ldu_node *node)
{
	return container_of(node, struct vm_area_struct, ldu_anon);
}

static struct rw_semaphore *ldu_anon_rwsem(struct ldu_root *root)
{
	return &ldu_anon_vma(root)->rwsem;
}

static void ldu_anon_apply_node(struct ldu_root *root, struct ldu_node *node,
				bool link)
{
	ldu_anon_apply(ldu_anon_node(node), link);
}

static void ldu_anon_unlinked(struct ldu_root *root, struct ldu_node *node)
{
	ldu_anon_free_chains(ldu_anon_node(node));
}

static void ldu_anon_get(struct ldu_node *node)
{
	atomic_inc(&ldu_anon_node(node)->ldu_refs);
}

static void ldu_anon_put(struct ldu_node *node)
{
	vm_area_free(ldu_anon_node(node));
}

/* An update's own chains may be freed by others, and the root with them. */
static bool ldu_anon_pin(struct ldu_root *root)
{
	return atomic_inc_not_zero(&ldu_anon_vma(root)->refcount);
}

static void ldu_anon_unpin(struct ldu_root *root)
{
	put_anon_vma(ldu_anon_vma(root));
}

#ifdef CONFIG_LDU_RMAP_VERIFY
static bool ldu_anon_chain_is_linked(struct anon_vma_chain *this)
{
	unsigned long first = this->vma->vm_pgoff;
	unsigned long last = first + vma_pages(this->vma) - 1;
	struct anon_vma_chain *avc;
	int found = 0;

	anon_vma_interval_tree_foreach(avc, &this->anon_vma->rb_root, first,
				       last)
		found += avc == this;
	WARN_ON_ONCE(found > 1);
	return found;
}

/* Whether all chains of a VMA are in their trees; WARNs if some are. */
static bool ldu_anon_is_linked(struct ldu_root *root, struct ldu_node *node)
{
	struct anon_vma_chain *avc;
	int linked = 0, all = 0;

	list_for_each_entry(avc, &ldu_anon_node(node)->anon_vma_chain,
			    same_vma) {
		linked += ldu_anon_chain_is_linked(avc);
		WARN_ON_ONCE(atomic_long_read(&avc->anon_vma->num_chains) <= 0);
		WARN_ON_ONCE(avc->anon_vma->root != ldu_anon_vma(root));
		all++;
	}
	WARN_ON_ONCE(linked && linked != all);
	return linked;
}

/* The root's own tree: the others are not known here. */
static bool ldu_anon_check(struct ldu_root *root)
{
	struct anon_vma *anon_vma = ldu_anon_vma(root);
	struct anon_vma_chain *avc;
	long chains = 0;

	anon_vma_interval_tree_foreach(avc, &anon_vma->rb_root, 0, ULONG_MAX) {
		if (avc->anon_vma != anon_vma)
			return false;
		chains++;
	}
	return chains <= atomic_long_read(&anon_vma->num_chains);
}

void ldu_anon_forget(struct vm_area_struct *vma, struct anon_vma *root)
{
	if (ldu_anon_enabled())
		ldu_forget(&root->ldu, &vma->ldu_anon);
}
#endif

static const struct ldu_ops ldu_anon_ops = {
	.rwsem = ldu_anon_rwsem,
	.apply = ldu_anon_apply_node,
	.unlinked = ldu_anon_unlinked,
	.get = ldu_anon_get,
	.put = ldu_anon_put,
	.pin = ldu_anon_pin,
	.unpin = ldu_anon_unpin,
#ifdef CONFIG_LDU_RMAP_VERIFY
	.is_linked = ldu_anon_is_linked,
	.check = ldu_anon_check,
#endif
};

static DEFINE_PER_CPU(struct ldu_counts, ldu_anon_counts);
static struct ldu_tree ldu_anon_tree =
	LDU_TREE_INIT(ldu_anon_tree, "anon", &ldu_anon_ops, &ldu_anon_counts);

void ldu_anon_init(struct anon_vma *anon_vma)
{
	ldu_root_init(&anon_vma->ldu);
	atomic_long_set(&anon_vma->num_chains, 0);
}

/* The anon_vma is about to be freed; it has no chains. */
void ldu_anon_retire(struct anon_vma *anon_vma)
{
	ldu_retire(&ldu_anon_tree, &anon_vma->ldu);
}

void ldu_anon_write_locked(struct anon_vma *root)
{
	ldu_write_locked(&ldu_anon_tree, &root->ldu);
}

void ldu_anon_read_locked(struct anon_vma *root)
{
	ldu_read_locked(&ldu_anon_tree, &root->ldu);
}

bool ldu_anon_read_trylocked(struct anon_vma *root)
{
	return ldu_read_trylocked(&ldu_anon_tree, &root->ldu);
}

void ldu_anon_begin_update(struct anon_vma *root)
{
	ldu_begin_update(&root->ldu);
}

void ldu_anon_end_update(struct anon_vma *root)
{
	ldu_end_update(&root->ldu);
}

static void ldu_anon_update(struct vm_area_struct *vma, struct ldu_node *after,
			    struct anon_vma *root, bool want)
{
	bool is_long;

	ldu_begin();
	is_long = ldu_mark(&ldu_anon_tree, &root->ldu, &vma->ldu_anon, after,
			   want);
	ldu_settle(&ldu_anon_tree, &root->ldu, is_long);
}

/*
 * Returns when every walk from now on meets the VMA, by all of its chains, and
 * meets it after another. May sleep.
 */
void ldu_anon_link(struct vm_area_struct *vma, struct vm_area_struct *after,
		   struct anon_vma *root)
{
	ldu_anon_update(vma, &after->ldu_anon, root, true);
}

/* Returns when no walk meets the VMA any more. May sleep. */
void ldu_anon_unlink(struct vm_area_struct *vma, struct anon_vma *root)
{
	ldu_anon_update(vma, NULL, root, false);
}

static int __init ldu_anon_start(void)
{
	if (ldu_register(&ldu_anon_tree))
		static_branch_enable(&ldu_anon_key);
	return 0;
}
/*
 * Before other CPUs are up and processes run: so all sites of the key change
 * before the first update, and the first walk.
 */
early_initcall(ldu_anon_start);
