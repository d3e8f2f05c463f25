/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_LDU_INTERNAL_H
#define _MM_LDU_INTERNAL_H
/* What the parts of the log share: see mm/ldu.c. */

#include <linux/cache.h>
#include <linux/ldu.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>

/* States of a node. */
#define LDU_QUEUED	1
#define LDU_WANT	2

/* Flags of a root. */
#define LDU_DRAINING	1
#define LDU_UPDATER	2

/* How long nodes are left to a section under the rwsem that may come. */
#define LDU_WORK_DELAY	HZ

/* One list of a log, on a cache line of its own. */
struct ldu_head {
	struct llist_head log;
	char padding[SMP_CACHE_BYTES - sizeof(struct llist_head)];
};

static inline struct ldu_node *ldu_node(struct llist_node *entry)
{
	return container_of(entry, struct ldu_node, entry);
}

static inline void ldu_count(struct ldu_tree *tree, enum ldu_count what,
			     unsigned long many)
{
	this_cpu_add(tree->counts->of[what], many);
}

bool ldu_is_empty(struct ldu_root *root);
void ldu_drain(struct ldu_tree *tree, struct ldu_root *root,
	       enum ldu_count reason);
void ldu_drain_as_updater(struct ldu_tree *tree, struct ldu_root *root,
			  enum ldu_count reason);
void ldu_activate(struct ldu_tree *tree, struct ldu_root *root);

#ifdef CONFIG_LDU_RMAP_VERIFY
void ldu_verify_init(struct ldu_root *root);
void ldu_verify_link(struct ldu_tree *tree, struct ldu_root *root,
		     struct ldu_node *node, struct ldu_node *after);
void ldu_verify_unlink(struct ldu_root *root, struct ldu_node *node);
void ldu_verify_apply(struct ldu_node *node);
void ldu_verify_done(struct ldu_tree *tree, struct ldu_root *root,
		     struct ldu_node *node, bool is_linked);
void ldu_verify_root(struct ldu_tree *tree, struct ldu_root *root);
#else
static inline void ldu_verify_init(struct ldu_root *root)
{
}

static inline void ldu_verify_link(struct ldu_tree *tree, struct ldu_root *root,
				   struct ldu_node *node,
				   struct ldu_node *after)
{
}

static inline void ldu_verify_unlink(struct ldu_root *root,
				     struct ldu_node *node)
{
}

static inline void ldu_verify_apply(struct ldu_node *node)
{
}

static inline void ldu_verify_done(struct ldu_tree *tree, struct ldu_root *root,
				   struct ldu_node *node, bool is_linked)
{
}

static inline void ldu_verify_root(struct ldu_tree *tree, struct ldu_root *root)
{
}
#endif

#endif /* _MM_LDU_INTERNAL_H */
