/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_LDU_H
#define _LINUX_LDU_H
/*
 * Lightweight deferred updates (LDU) of trees that an rwsem protects: an
 * update is put into a log, without the rwsem, and the next to take the rwsem
 * applies the log before anything else. See mm/ldu.c for the protocol.
 */

#include <linux/atomic.h>
#include <linux/ldu_types.h>
#include <linux/list.h>
#include <linux/percpu-defs.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

/**
 * struct ldu_ops - what a kind of tree does
 * @rwsem: the rwsem that protects a root's tree
 * @begin: called before a drain changes the tree; may be NULL
 * @end: called after it; may be NULL
 * @apply: links an element into the tree, or unlinks it
 * @unlinked: an element that its owner has given up is neither in the tree nor
 *	in the log any more; may be NULL
 * @get: takes a reference that keeps an element's memory
 * @put: drops one; memory is given back after a grace period of RCU
 * @pin: takes a reference that keeps a root, unless it has ended; NULL if the
 *	owner of an element keeps the root until ldu_settle() has returned
 * @unpin: drops it; may sleep
 * @is_linked: looks for an element in the tree; for CONFIG_LDU_RMAP_VERIFY, as
 * @check: whether the tree is in order
 *
 * All are called with the rwsem held for writing, but for @rwsem, @get, @pin
 * and @unpin, and none but @unpin may sleep.
 */
struct ldu_ops {
	struct rw_semaphore *(*rwsem)(struct ldu_root *root);
	void (*begin)(struct ldu_root *root);
	void (*end)(struct ldu_root *root);
	void (*apply)(struct ldu_root *root, struct ldu_node *node, bool link);
	void (*unlinked)(struct ldu_root *root, struct ldu_node *node);
	void (*get)(struct ldu_node *node);
	void (*put)(struct ldu_node *node);
	bool (*pin)(struct ldu_root *root);
	void (*unpin)(struct ldu_root *root);
#ifdef CONFIG_LDU_RMAP_VERIFY
	bool (*is_linked)(struct ldu_root *root, struct ldu_node *node);
	bool (*check)(struct ldu_root *root);
#endif
};

/* What is counted, for each kind of tree. */
enum ldu_count {
	LDU_PUSH,		/* nodes that were put into a log */
	LDU_CANCEL,		/* nodes whose update undid the one in the log */
	LDU_SETTLE_SKIP,	/* updates that found the tree locked by updaters */
	LDU_SETTLE_WAIT,	/* updates that waited for a walker */
	LDU_DRAIN_HELPER,	/* drains by those who have taken the rwsem */
	LDU_DRAIN_SETTLE,	/* by updates that waited */
	LDU_DRAIN_LIMIT,	/* by updates that found the log long */
	LDU_DRAIN_WORKER,	/* by the worker */
	LDU_DRAIN_RETIRE,	/* by the end of the root */
	LDU_LINK,		/* elements that a drain has linked */
	LDU_UNLINK,		/* elements that a drain has unlinked */
	LDU_GARBAGE,		/* nodes for which there was nothing to do */
	LDU_REDO,		/* nodes that changed while they were drained */
	LDU_SPREAD,		/* logs that got lists for CPUs */
	LDU_VERIFY,		/* elements that CONFIG_LDU_RMAP_VERIFY has checked */
	LDU_NR_COUNTS,
};

struct ldu_counts {
	unsigned long of[LDU_NR_COUNTS];
};

/**
 * struct ldu_tree - a kind of tree
 * @name: as debugfs shows it
 * @ops: what it does
 * @lock: protects @roots, and the roots on it from going away
 * @roots: roots that may have a log
 * @work: drains them after a while
 * @counts: what was done, by CPU
 */
struct ldu_tree {
	const char *name;
	const struct ldu_ops *ops;
	spinlock_t lock;
	struct list_head roots;
	struct delayed_work work;
	struct ldu_counts __percpu *counts;
};

void ldu_work(struct work_struct *work);

#define LDU_TREE_INIT(tree, ldu_name, ldu_operations, percpu_counts)	\
{									\
	.name = ldu_name,						\
	.ops = ldu_operations,						\
	.lock = __SPIN_LOCK_UNLOCKED(tree.lock),			\
	.roots = LIST_HEAD_INIT(tree.roots),				\
	.work = __DELAYED_WORK_INITIALIZER(tree.work, ldu_work, 0),	\
	.counts = percpu_counts,					\
}

extern unsigned int ldu_limit;
extern unsigned int ldu_nr_heads;

/* Lists of a log: for more CPUs, some share one. */
#define LDU_HEADS_MAX	64U

bool ldu_register(const struct ldu_tree *tree);

void ldu_root_init(struct ldu_root *root);

void ldu_begin(void);
bool ldu_mark(struct ldu_tree *tree, struct ldu_root *root,
	      struct ldu_node *node, struct ldu_node *after, bool want);
void ldu_settle(struct ldu_tree *tree, struct ldu_root *root, bool is_long);

bool ldu_is_queued(struct ldu_node *node);
void ldu_cancel(struct ldu_tree *tree, struct ldu_root *root,
		struct ldu_node *node);

void ldu_write_locked(struct ldu_tree *tree, struct ldu_root *root);
void ldu_read_locked(struct ldu_tree *tree, struct ldu_root *root);
bool ldu_read_trylocked(struct ldu_tree *tree, struct ldu_root *root);

void ldu_begin_update(struct ldu_root *root);
void ldu_end_update(struct ldu_root *root);

bool ldu_is_pending(struct ldu_root *root);
void ldu_retire(struct ldu_tree *tree, struct ldu_root *root);

#ifdef CONFIG_LDU_RMAP_VERIFY
void ldu_forget(struct ldu_root *root, struct ldu_node *node);
void ldu_check_freed(struct ldu_node *node);
#endif

#endif /* _LINUX_LDU_H */
