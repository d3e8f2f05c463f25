// SPDX-License-Identifier: GPL-2.0
/*
 * Lightweight deferred updates (LDU): a log before a tree.
 *
 * Fork, exit and mmap link and unlink elements of trees that are read much
 * more seldom than they are changed, and take the tree's rwsem for each. Here
 * they put the element into the tree's log instead. The next section under the
 * rwsem empties the log before anything else, so that every section begins with
 * an empty log and a tree that is up to date. An element that is
 * unlinked while it is still in the log was never in the tree: nothing is left
 * to do for it.
 *
 * After
 *	S.-G. Lee and others, "LDU: lightweight deferred updates", and
 *	S. Boyd-Wickizer and others, "OpLog: a library for scaling update-heavy
 *	data structures" (2013).
 *
 * What an update guarantees when ldu_mark() and ldu_settle() have returned is
 * what stock's "lock, update, unlock" guarantees:
 *
 *   (a) a section that takes the rwsem later begins with the update applied;
 *   (b) a section that has taken the rwsem earlier is over, unless it said
 *	 that it looks at no element but its own (ldu_begin_update()).
 *
 * They hold by one pair of full barriers:
 *
 *	ldu_mark(), ldu_settle()		a section
 *	  node into the log			  rwsem taken
 *	  smp_mb()				  smp_mb()
 *	  is the rwsem taken?			  is the log empty?
 *
 * Either the section finds the node and drains the log, or the update finds
 * the rwsem taken and waits until it is free.
 *
 * A log is one list, to which all CPUs push. With ldu=percpu a log that was long
 * gets a list for each CPU, or up to 64 of them, so that updates of different
 * CPUs meet nowhere. Each list is drained from its oldest node on; an element
 * that is to come after another goes to the list that the other is in, until
 * that was drained. So a walker that visits elements with equal keys in their
 * order meets the parent of a fork before its child. There is no order between
 * lists, and no moment at which all are read: an update is found or it is not,
 * by itself.
 *
 * A node's state is changed by two: its owner, of whom there is one at a time,
 * and the one who drains, under the rwsem.
 *
 *	QUEUED	WANT
 *	  0	 -	in the tree or not, as ->linked says; it is the owner's
 *	  1	 1	in the log, to be linked
 *	  1	 0	in the log, to be unlinked
 *
 * An element is linked at most once, and unlinked at most once after that: so
 * a node changes at most once while it is in the log, and nothing is linked in
 * the place of something older.
 *
 * Draining applies what it reads, and clears QUEUED if the state is still that;
 * if not, it applies what it reads then. So it never leaves a node whose owner
 * has changed his mind meanwhile, and the owner never waits.
 *
 * A section that changes an element of its own, and looks at no other, need
 * not apply the log: see ldu_is_queued().
 */

#include <linux/ldu.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "ldu_internal.h"

/* A list of this many nodes is drained by who makes it longer. */
unsigned int ldu_limit __read_mostly = 256;

/* How many lists a log gets when it was long; 0: none. */
unsigned int ldu_nr_heads __read_mostly;

void ldu_root_init(struct ldu_root *root)
{
	init_llist_head(&root->log);
	RCU_INIT_POINTER(root->heads, NULL);
	root->flags = 0;
	root->is_used = false;
	root->is_active = false;
	INIT_LIST_HEAD(&root->active);
	ldu_verify_init(root);
}

/*
 * Lists for CPUs, if the log has them. The caller is in a section of RCU, or
 * keeps the root.
 */
static struct ldu_head *ldu_heads(struct ldu_root *root)
{
	return rcu_dereference_raw(root->heads);
}

/* Whether there is no log. */
bool ldu_is_empty(struct ldu_root *root)
{
	struct ldu_head *heads = ldu_heads(root);
	unsigned int i;

	if (!llist_empty(&root->log))
		return false;
	for (i = 0; heads && i < ldu_nr_heads; i++)
		if (!llist_empty(&heads[i].log))
			return false;
	return true;
}

/*
 * Chooses the list of the log that a node goes to. That is this CPU's, if there
 * are such; but an element that is to be linked after another goes where that
 * is, if that is still in the log: then no drain meets it first.
 *
 * No order is needed between this look at the other's state and the push: who
 * clears QUEUED has linked the other, and drains this node later, or another
 * does who takes the rwsem later.
 */
static struct llist_head *ldu_choose(struct ldu_root *root,
				     struct ldu_node *node,
				     struct ldu_node *after)
{
	struct ldu_head *heads = ldu_heads(root);

	if (after && atomic_read(&after->state) & LDU_QUEUED)
		node->head = after->head;
	else
		node->head = heads ? raw_smp_processor_id() % ldu_nr_heads + 1 : 0;
	return node->head ? &heads[node->head - 1].log : &root->log;
}

/* Returns the node's ordinal. */
static unsigned int ldu_push(struct ldu_tree *tree, struct ldu_root *root,
			     struct ldu_node *node, struct ldu_node *after)
{
	struct llist_head *log = ldu_choose(root, node, after);
	struct llist_node *first = READ_ONCE(log->first);
	unsigned int ordinal;

	/* Before the push: who drains the node, and ends the root, finds it. */
	if (!READ_ONCE(root->is_used))
		WRITE_ONCE(root->is_used, true);
	do {
		/* The first node may be drained; RCU keeps its memory. */
		ordinal = 1;
		if (first)
			ordinal += READ_ONCE(ldu_node(first)->ordinal);
		WRITE_ONCE(node->ordinal, ordinal);
		node->entry.next = first;
		/* A full barrier. */
	} while (!try_cmpxchg(&log->first, &first, &node->entry));

	/*
	 * Pairs with the smp_mb() in ldu_work(): either this finds that the
	 * root has been taken off the list, or that finds the node.
	 */
	if (!READ_ONCE(root->is_active))
		ldu_activate(tree, root);
	ldu_count(tree, LDU_PUSH, 1);
	return ordinal;
}

/**
 * ldu_mark - says that an element is to be in the tree, or not
 * @tree: the kind of tree
 * @root: the tree
 * @node: the element's; the caller is its owner, and alone
 * @after: an element of the caller's that is to be in the tree, before this
 *	one; NULL if there is none
 * @want: whether it is to be in the tree, in which it is not, or the reverse
 *
 * Call it, once or several times, between ldu_begin() and ldu_settle(), and
 * nothing that relies on the update before that has returned: fill no page
 * tables for an element that was linked, and free none of one that was
 * unlinked.
 *
 * Returns whether the list that it went to is long.
 */
bool ldu_mark(struct ldu_tree *tree, struct ldu_root *root,
	      struct ldu_node *node, struct ldu_node *after, bool want)
{
	int new = LDU_QUEUED | (want ? LDU_WANT : 0);
	int old;

	if (!want)
		ldu_verify_unlink(root, node);

	/*
	 * Acquire: pairs with the release in ldu_drain_node(), which has
	 * written ->linked before.
	 */
	while ((old = atomic_read_acquire(&node->state)) & LDU_QUEUED) {
		/* It is unlinked, and is never linked again. */
		WARN_ON_ONCE(want || !(old & LDU_WANT));
		/* A full barrier, as ldu_push() has one. */
		if (atomic_cmpxchg(&node->state, old, new) == old) {
			ldu_count(tree, LDU_CANCEL, 1);
			return false;
		}
		/* It was drained meanwhile. */
	}

	node->linked = !want;
	tree->ops->get(node);
	atomic_set(&node->state, new);
	if (want)
		ldu_verify_link(tree, root, node, after);
	/* Publishes all of that. */
	return ldu_push(tree, root, node, after) >= READ_ONCE(ldu_limit);
}

/**
 * ldu_is_queued - whether an element is in the log, and so not in the tree yet
 * @node: the element's; the caller owns it, wants it in the tree, and has the
 *	rwsem for writing
 *
 * If so, its keys may be changed as they are: who drains links it by those that
 * it has then, and drains under the rwsem. Else it is in the tree. The answer
 * holds as long as the rwsem is held and the log is left alone.
 */
bool ldu_is_queued(struct ldu_node *node)
{
	return atomic_read(&node->state) & LDU_QUEUED;
}

/**
 * ldu_cancel - says that an element that is queued is not to be in the tree
 * @tree: the kind of tree
 * @root: the tree, whose rwsem the caller has for writing
 * @node: the element's, for which ldu_is_queued() has returned true
 *
 * Every walk before the caller's section is over, and those after it find the
 * element neither in the tree nor wanted.
 */
void ldu_cancel(struct ldu_tree *tree, struct ldu_root *root,
		struct ldu_node *node)
{
	ldu_verify_unlink(root, node);
	/* Who drains is kept out. */
	atomic_set(&node->state, LDU_QUEUED);
	ldu_count(tree, LDU_CANCEL, 1);
}

static void ldu_drain_node(struct ldu_tree *tree, struct ldu_root *root,
			   struct ldu_node *node)
{
	const struct ldu_ops *ops = tree->ops;
	bool was_linked = node->linked;
	int old = atomic_read(&node->state);

	for (;;) {
		bool want = old & LDU_WANT;

		if (want != node->linked) {
			if (want)
				ldu_verify_apply(node);
			ops->apply(root, node, want);
			node->linked = want;
			ldu_count(tree, want ? LDU_LINK : LDU_UNLINK, 1);
		}
		/*
		 * Release: pairs with the acquire in ldu_mark(). If the owner
		 * has changed the state since, it finds QUEUED and leaves the
		 * node to this loop.
		 */
		if (atomic_try_cmpxchg(&node->state, &old, old & ~LDU_QUEUED))
			break;
		ldu_count(tree, LDU_REDO, 1);
	}

	ldu_verify_done(tree, root, node, old & LDU_WANT);
	if (!(old & LDU_WANT)) {
		if (!was_linked)
			ldu_count(tree, LDU_GARBAGE, 1);
		if (ops->unlinked)
			ops->unlinked(root, node);
	}
	/* The owner may have given up his reference already. */
	ops->put(node);
}

/* Drains one list of the log; returns how many nodes were in it. */
static unsigned int ldu_drain_list(struct ldu_tree *tree, struct ldu_root *root,
				   struct llist_head *log)
{
	struct llist_node *entry, *next;
	unsigned int drained = 0;

	if (llist_empty(log))
		return 0;
	/* Oldest first. */
	entry = llist_reverse_order(llist_del_all(log));
	for (; entry; entry = next) {
		next = entry->next;
		ldu_drain_node(tree, root, ldu_node(entry));
		drained++;
	}
	return drained;
}

/*
 * The log was long: so there are many updates for each section under the
 * rwsem, and they meet at the one list. Gives each CPU its own, which sections
 * have to look at from now on. Sections find it by the rwsem. Until the root
 * ends: a push may have found the lists, and not be done.
 */
static void ldu_spread(struct ldu_tree *tree, struct ldu_root *root)
{
	struct ldu_head *heads;

	heads = kcalloc(ldu_nr_heads, sizeof(*heads), GFP_NOWAIT | __GFP_NOWARN);
	if (!heads)
		return;
	/* Pairs with the rcu_dereference_raw() in ldu_heads(). */
	rcu_assign_pointer(root->heads, heads);
	ldu_count(tree, LDU_SPREAD, 1);
}

/* Applies the log. The caller holds the rwsem for writing. */
void ldu_drain(struct ldu_tree *tree, struct ldu_root *root,
	       enum ldu_count reason)
{
	struct ldu_head *heads = ldu_heads(root);
	unsigned int drained, i;

	rwsem_assert_held_write(tree->ops->rwsem(root));
	WRITE_ONCE(root->flags, root->flags | LDU_DRAINING);
	/*
	 * Pairs with the first smp_rmb() in ldu_is_pending(): who finds a list
	 * empty since this took it finds the mark. And with the smp_mb() in
	 * ldu_settle(), since some have just taken the rwsem.
	 */
	smp_mb();
	if (tree->ops->begin)
		tree->ops->begin(root);
	drained = ldu_drain_list(tree, root, &root->log);
	if (!heads && ldu_nr_heads && drained >= READ_ONCE(ldu_limit))
		ldu_spread(tree, root);
	for (i = 0; heads && i < ldu_nr_heads; i++)
		drained += ldu_drain_list(tree, root, &heads[i].log);
	if (tree->ops->end)
		tree->ops->end(root);
	if (drained)
		ldu_count(tree, reason, 1);
	ldu_verify_root(tree, root);
	/* Release: pairs with the second smp_rmb() in ldu_is_pending(). */
	smp_store_release(&root->flags, root->flags & ~LDU_DRAINING);
}

/**
 * ldu_begin_update - says that a section looks at no element but its own
 * @root: the tree, whose rwsem the caller has taken for writing
 *
 * Updates do not wait for it until ldu_end_update(). That is sound: who finds
 * the mark knows that an updater held the rwsem at that moment, so that every
 * walker before it is over, and every one after it drains the log. If a walker
 * after it has missed the node, then it took the rwsem before the node was put
 * in; then the mark was cleared before that, and the update, which has found
 * the rwsem taken, finds the mark cleared.
 */
void ldu_begin_update(struct ldu_root *root)
{
	/* Release: pairs with the acquire in ldu_settle(). */
	smp_store_release(&root->flags, root->flags | LDU_UPDATER);
}

/**
 * ldu_end_update - ends what ldu_begin_update() has begun
 * @root: the tree; call it before the rwsem is released
 */
void ldu_end_update(struct ldu_root *root)
{
	/* Ordered before the next section by the rwsem's release. */
	WRITE_ONCE(root->flags, root->flags & ~LDU_UPDATER);
}

/* Drains for an update, which is no walker. The caller has taken the rwsem. */
void ldu_drain_as_updater(struct ldu_tree *tree, struct ldu_root *root,
			  enum ldu_count reason)
{
	ldu_begin_update(root);
	ldu_drain(tree, root, reason);
	ldu_end_update(root);
	up_write(tree->ops->rwsem(root));
}

/**
 * ldu_begin - begins updates of a tree
 *
 * From here to ldu_settle() the caller does not sleep: what others have drained
 * stays in memory, and so does a root that has ended.
 */
void ldu_begin(void)
{
	rcu_read_lock();
}

/*
 * Ends the section that ldu_begin() has begun, and drains. Who has found a walker
 * waits for it; a log that is only long is drained if the rwsem is free.
 */
static void ldu_settle_drain(struct ldu_tree *tree, struct ldu_root *root,
			     enum ldu_count reason)
{
	const struct ldu_ops *ops = tree->ops;
	struct rw_semaphore *rwsem = ops->rwsem(root);

	/* If the root has ended, then the nodes were drained before. */
	if (ops->pin && !ops->pin(root)) {
		rcu_read_unlock();
		return;
	}
	rcu_read_unlock();
	if (reason == LDU_DRAIN_SETTLE) {
		ldu_count(tree, LDU_SETTLE_WAIT, 1);
		down_write(rwsem);
		ldu_drain_as_updater(tree, root, reason);
	} else if (down_write_trylock(rwsem)) {
		ldu_drain_as_updater(tree, root, reason);
	}
	if (ops->unpin)
		ops->unpin(root);
}

/**
 * ldu_settle - returns when no section relies on the tree as it was
 * @tree: the kind of tree
 * @root: the tree
 * @is_long: whether an ldu_mark() since ldu_begin() has returned true
 *
 * May sleep, if a walker has the rwsem.
 */
void ldu_settle(struct ldu_tree *tree, struct ldu_root *root, bool is_long)
{
	struct rw_semaphore *rwsem = tree->ops->rwsem(root);
	bool is_locked;

	/* Pairs with the smp_mb() in ldu_has_log(). */
	smp_mb();
	is_locked = rwsem_is_locked(rwsem);
	/*
	 * Pairs with the release of the rwsem by who had it last: what that
	 * section has read and written comes before what the caller goes on
	 * with, and before this look at the mark.
	 */
	smp_acquire__after_ctrl_dep();
	if (is_locked) {
		/*
		 * Acquire: pairs with the release in ldu_begin_update(). If a
		 * walk had the rwsem a moment ago and an updater has it now,
		 * the walk is over before what the caller goes on with.
		 */
		if (!(smp_load_acquire(&root->flags) & LDU_UPDATER)) {
			ldu_settle_drain(tree, root, LDU_DRAIN_SETTLE);
			return;
		}
		ldu_count(tree, LDU_SETTLE_SKIP, 1);
	}
	if (is_long)
		ldu_settle_drain(tree, root, LDU_DRAIN_LIMIT);
	else
		rcu_read_unlock();
}

/* Whether there is a log; the caller has taken the rwsem. */
static bool ldu_has_log(struct ldu_root *root)
{
	/* Pairs with the smp_mb() in ldu_settle(). */
	smp_mb();
	return !ldu_is_empty(root);
}

/**
 * ldu_write_locked - empties the log
 * @tree: the kind of tree
 * @root: the tree, whose rwsem the caller has just taken for writing
 */
void ldu_write_locked(struct ldu_tree *tree, struct ldu_root *root)
{
	if (ldu_has_log(root))
		ldu_drain(tree, root, LDU_DRAIN_HELPER);
}

/**
 * ldu_read_locked - empties the log
 * @tree: the kind of tree
 * @root: the tree, whose rwsem the caller has just taken for reading; it has
 *	it for reading when this returns, but may not have had it in between
 */
void ldu_read_locked(struct ldu_tree *tree, struct ldu_root *root)
{
	struct rw_semaphore *rwsem = tree->ops->rwsem(root);

	if (!ldu_has_log(root))
		return;
	up_read(rwsem);
	down_write(rwsem);
	ldu_drain(tree, root, LDU_DRAIN_HELPER);
	downgrade_write(rwsem);
}

/**
 * ldu_read_trylocked - the same without sleeping
 * @tree: the kind of tree
 * @root: the tree, whose rwsem the caller has just taken for reading
 *
 * Returns whether the caller has the rwsem.
 */
bool ldu_read_trylocked(struct ldu_tree *tree, struct ldu_root *root)
{
	struct rw_semaphore *rwsem = tree->ops->rwsem(root);

	if (!ldu_has_log(root))
		return true;
	up_read(rwsem);
	if (!down_write_trylock(rwsem))
		return false;
	ldu_drain(tree, root, LDU_DRAIN_HELPER);
	downgrade_write(rwsem);
	return true;
}

/**
 * ldu_is_pending - whether the tree may have elements that are not in it yet
 * @root: the tree
 *
 * For a look at the tree without its rwsem, which comes after this.
 */
bool ldu_is_pending(struct ldu_root *root)
{
	bool is_empty;

	/* Lists go away with the root. */
	rcu_read_lock();
	is_empty = ldu_is_empty(root);
	rcu_read_unlock();
	if (!is_empty)
		return true;
	/* Pairs with the smp_mb() in ldu_drain(). */
	smp_rmb();
	if (READ_ONCE(root->flags) & LDU_DRAINING)
		return true;
	/* Pairs with the release at the end of ldu_drain(). */
	smp_rmb();
	return false;
}
