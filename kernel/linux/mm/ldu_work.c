// SPDX-License-Identifier: GPL-2.0
/*
 * Logs that nobody else applies: a worker does, after a while, and the end of
 * their tree does. See mm/ldu.c for the log.
 */

#include <linux/ldu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "ldu_internal.h"

/*
 * Lets the worker look at the root after a while. If the root has ended
 * meanwhile, there is no log, and the root's memory is still there: the caller
 * is in a section of RCU.
 */
void ldu_activate(struct ldu_tree *tree, struct ldu_root *root)
{
	spin_lock(&tree->lock);
	if (!root->is_active && !ldu_is_empty(root)) {
		/* Pairs with the READ_ONCE() in ldu_push(). */
		WRITE_ONCE(root->is_active, true);
		list_add_tail(&root->active, &tree->roots);
		schedule_delayed_work(&tree->work, LDU_WORK_DELAY);
	}
	spin_unlock(&tree->lock);
}

/**
 * ldu_retire - leaves no trace of a root
 * @tree: the kind of tree
 * @root: the tree; nobody updates it any more, but there may be walkers
 *
 * May sleep.
 */
void ldu_retire(struct ldu_tree *tree, struct ldu_root *root)
{
	struct rw_semaphore *rwsem = tree->ops->rwsem(root);
	struct ldu_head *heads;

	if (!READ_ONCE(root->is_used))
		return;
	/* Who was about to put it on the list finds that there is no log. */
	spin_lock(&tree->lock);
	list_del_init(&root->active);
	WRITE_ONCE(root->is_active, false);
	spin_unlock(&tree->lock);
	heads = rcu_access_pointer(root->heads);
	if (!heads && ldu_is_empty(root))
		return;
	down_write(rwsem);
	ldu_drain(tree, root, LDU_DRAIN_RETIRE);
	/* That drain may have made them. */
	heads = rcu_access_pointer(root->heads);
	RCU_INIT_POINTER(root->heads, NULL);
	up_write(rwsem);
	/* Looks without the rwsem may still be at them. */
	if (heads)
		kvfree_rcu_mightsleep(heads);
}

/* Drains a root, or leaves it to who has the rwsem. */
static void ldu_work_root(struct ldu_tree *tree, struct ldu_root *root)
{
	struct rw_semaphore *rwsem = tree->ops->rwsem(root);

	if (!ldu_is_empty(root) && down_write_trylock(rwsem))
		ldu_drain_as_updater(tree, root, LDU_DRAIN_WORKER);

	WRITE_ONCE(root->is_active, false);
	/* Pairs with the push in ldu_push(). */
	smp_mb();
	if (ldu_is_empty(root))
		list_del_init(&root->active);
	else
		WRITE_ONCE(root->is_active, true);
}

/**
 * ldu_work - drains the logs that nobody else has drained
 * @work: of a struct ldu_tree
 *
 * Roots do not go away while the tree's lock is held: see ldu_retire().
 */
void ldu_work(struct work_struct *work)
{
	struct ldu_tree *tree =
		container_of(to_delayed_work(work), struct ldu_tree, work);
	struct ldu_root *root;
	LIST_HEAD(roots);

	spin_lock(&tree->lock);
	list_splice_init(&tree->roots, &roots);
	while (!list_empty(&roots)) {
		root = list_first_entry(&roots, struct ldu_root, active);
		list_move_tail(&root->active, &tree->roots);
		ldu_work_root(tree, root);
		if (need_resched()) {
			spin_unlock(&tree->lock);
			cond_resched();
			spin_lock(&tree->lock);
		}
	}
	if (!list_empty(&tree->roots))
		schedule_delayed_work(&tree->work, LDU_WORK_DELAY);
	spin_unlock(&tree->lock);
}
