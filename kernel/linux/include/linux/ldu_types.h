/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_LDU_TYPES_H
#define _LINUX_LDU_TYPES_H

#include <linux/atomic.h>
#include <linux/llist.h>
#include <linux/types.h>

/**
 * struct ldu_node - one element of a tree, and its place in the log
 * @entry: links the node in its root's log while it is queued
 * @state: whether it is queued, and whether it is to be in the tree
 * @ordinal: how many nodes were in the log when it was put in, itself included
 * @linked: whether it is in the tree; written by its owner while it is not
 *	queued, and by the one who drains while it is
 */
struct ldu_node {
	struct llist_node entry;
	atomic_t state;
	unsigned int ordinal;
	bool linked;
};

static inline void ldu_node_init(struct ldu_node *node)
{
	atomic_set(&node->state, 0);
	node->ordinal = 0;
	node->linked = false;
}

/**
 * struct ldu_root - the log of one tree
 * @log: nodes that are to be linked or unlinked, newest first
 * @flags: what is being done to the tree; written under its rwsem
 * @is_used: whether there has been a log
 * @is_active: whether the root is on the list of the worker
 * @active: links it there
 */
struct ldu_root {
	struct llist_head log;
	unsigned int flags;
	bool is_used;
	bool is_active;
	struct list_head active;
};

#endif /* _LINUX_LDU_TYPES_H */
