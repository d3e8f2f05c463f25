/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_LDU_TYPES_H
#define _LINUX_LDU_TYPES_H

#include <linux/atomic.h>
#include <linux/llist.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>

/**
 * struct ldu_node - one element of a tree, and its place in the log
 * @entry: links the node in its root's log while it is queued
 * @state: whether it is queued, and whether it is to be in the tree
 * @ordinal: how many nodes were in its list when it was put in, itself included
 * @head: the list of the log that it is in, or was in last
 * @linked: whether it is in the tree; written by its owner while it is not
 *	queued, and by the one who drains while it is
 * @shadow: links it in the list of elements that are to be in the tree
 * @after: the element that is to be linked before it
 */
struct ldu_node {
	struct llist_node entry;
	atomic_t state;
	unsigned int ordinal;
	unsigned short head;
	bool linked;
#ifdef CONFIG_LDU_RMAP_VERIFY
	struct list_head shadow;
	struct ldu_node *after;
#endif
};

static inline void ldu_node_init(struct ldu_node *node)
{
	atomic_set(&node->state, 0);
	node->ordinal = 0;
	node->head = 0;
	node->linked = false;
#ifdef CONFIG_LDU_RMAP_VERIFY
	node->shadow.next = &node->shadow;
	node->shadow.prev = &node->shadow;
	node->after = NULL;
#endif
}

struct ldu_head;

/**
 * struct ldu_root - the log of one tree
 * @log: nodes that are to be linked or unlinked, newest first
 * @heads: more such lists, one for each CPU or for a few of them, of a tree
 *	whose log was long; NULL before
 * @flags: what is being done to the tree; written under its rwsem
 * @is_used: whether there has been a log
 * @is_active: whether the root is on the list of the worker
 * @active: links it there
 * @shadow_lock: protects @shadow
 * @shadow: elements that are to be in the tree, as those say who have logged it
 */
struct ldu_root {
	struct llist_head log;
	struct ldu_head __rcu *heads;
	unsigned int flags;
	bool is_used;
	bool is_active;
	struct list_head active;
#ifdef CONFIG_LDU_RMAP_VERIFY
	spinlock_t shadow_lock;
	struct list_head shadow;
#endif
};

#endif /* _LINUX_LDU_TYPES_H */
