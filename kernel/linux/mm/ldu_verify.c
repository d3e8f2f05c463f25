// SPDX-License-Identifier: GPL-2.0
/*
 * CONFIG_LDU_RMAP_VERIFY: trees beside what was linked (see mm/ldu.c for the log).
 *
 * Who logs that an element is to be in a tree also puts it into a list, the
 * shadow, before that, and takes it out before he logs that it is not to be.
 * At the end of each drain, with the rwsem held, tree and shadow differ by
 * elements only that are in the log again: who is in the shadow and not in the
 * log is in the tree, and who was taken out and has left the log is not.
 */

#include <linux/ldu.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include "ldu_internal.h"

void ldu_verify_init(struct ldu_root *root)
{
	spin_lock_init(&root->shadow_lock);
	INIT_LIST_HEAD(&root->shadow);
}

/* The node is queued already, and not in the log yet. */
void ldu_verify_link(struct ldu_tree *tree, struct ldu_root *root,
		     struct ldu_node *node, struct ldu_node *after)
{
	WARN_ON_ONCE(!list_empty(&node->shadow));
	node->after = after;
	if (after)
		tree->ops->get(after);
	spin_lock(&root->shadow_lock);
	list_add_tail(&node->shadow, &root->shadow);
	spin_unlock(&root->shadow_lock);
}

/* The owner is about to log that the element is not to be in the tree. */
void ldu_verify_unlink(struct ldu_root *root, struct ldu_node *node)
{
	spin_lock(&root->shadow_lock);
	list_del_init(&node->shadow);
	spin_unlock(&root->shadow_lock);
}

/**
 * ldu_forget - says that an element was unlinked without a log
 * @root: the tree, whose rwsem the caller has for writing
 * @node: the element's, linked by a log or without one
 */
void ldu_forget(struct ldu_root *root, struct ldu_node *node)
{
	WARN_ON_ONCE(atomic_read(&node->state) & LDU_QUEUED);
	ldu_verify_unlink(root, node);
	/* As if a log had unlinked it. */
	atomic_set(&node->state, 0);
}

/**
 * ldu_check_freed - looks whether nobody expects an element in a tree
 * @node: of an element that is freed
 */
void ldu_check_freed(struct ldu_node *node)
{
	WARN_ON_ONCE(atomic_read(&node->state) & LDU_QUEUED);
	WARN_ON_ONCE(!list_empty(&node->shadow));
}

/* An element is about to be linked: not before the one that it comes after. */
void ldu_verify_apply(struct ldu_node *node)
{
	struct ldu_node *after = node->after;

	if (after && atomic_read(&after->state) == (LDU_QUEUED | LDU_WANT))
		WARN_ON_ONCE(!after->linked);
}

/* An element has left the log. */
void ldu_verify_done(struct ldu_tree *tree, struct ldu_root *root,
		     struct ldu_node *node, bool is_linked)
{
	if (node->after)
		tree->ops->put(node->after);
	node->after = NULL;
	if (!is_linked)
		WARN_ON_ONCE(tree->ops->is_linked(root, node));
}

/* A drain has ended; the rwsem is held. */
void ldu_verify_root(struct ldu_tree *tree, struct ldu_root *root)
{
	struct ldu_node *node;
	unsigned long checked = 0;

	spin_lock(&root->shadow_lock);
	list_for_each_entry(node, &root->shadow, shadow) {
		if (atomic_read(&node->state) & LDU_QUEUED)
			continue;
		WARN_ON_ONCE(!node->linked);
		WARN_ON_ONCE(!tree->ops->is_linked(root, node));
		checked++;
	}
	spin_unlock(&root->shadow_lock);
	WARN_ON_ONCE(!tree->ops->check(root));
	ldu_count(tree, LDU_VERIFY, checked);
}
