// SPDX-License-Identifier: GPL-2.0
/*
 * mm/ldu.c as a program: threads link and unlink elements of a tree while
 * others walk it, and each looks whether the other keeps its promises.
 *
 * A walker that has the rwsem must find every element that was linked before
 * it began and is still linked, and none that was unlinked before, and a
 * parent before its child. An update that has settled must find no walker that
 * had begun before it.
 *
 *	ldu_test SECONDS
 *
 * Ends with status 1 and a line if a promise is broken.
 */

#include <linux/ldu.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

#define UPDATERS 4
#define WALKERS 2
#define FAMILIES 8
#define GENERATIONS 2
/* Lists of a log. */
#define HEADS 3
/* Families that an updater has before memory is given back. */
#define ROUND 2000

/* A parent, or its child: linked once, unlinked once. */
struct element {
	struct ldu_node node;
	atomic_t references;
	/* Under the rwsem: whether it is in the tree, and since when. */
	bool is_in;
	unsigned long since;
	/* What it is in the tree by, and what it is to be in the tree by. */
	unsigned int linked_key, key;
	struct element *next;
};

/* Where an owner has one element after another. */
struct place {
	struct element *element;
	/*
	 * 0 unlinked, 1 being linked, 2 linked, 3 being unlinked, and so on:
	 * written by the owner.
	 */
	unsigned int version;
};

struct family {
	struct place member[GENERATIONS];
};

static struct {
	struct ldu_root root;
	struct rw_semaphore rwsem;
	unsigned long changes;
	struct family family[UPDATERS][FAMILIES];
} tree;

static unsigned long moments;
/* When each walker has begun; 0 while it does not walk. */
static unsigned long walks[WALKERS];
static bool is_over;
/* Elements that nobody refers to, until no thread works. */
static struct element *freed;
static unsigned long made, gone;
static unsigned long walked, updated;

static _Noreturn void fail(const char *what)
{
	printf("%s\n", what);
	exit(1);
}

static unsigned long moment(void)
{
	return __atomic_add_fetch(&moments, 1, __ATOMIC_SEQ_CST);
}

static struct element *element(struct ldu_node *node)
{
	return container_of(node, struct element, node);
}

static struct rw_semaphore *rwsem_of(struct ldu_root *root)
{
	(void)root;
	return &tree.rwsem;
}

static void apply(struct ldu_root *root, struct ldu_node *node, bool link)
{
	struct element *this = element(node);

	(void)root;
	if (this->is_in == link)
		fail("an element was linked or unlinked twice");
	this->is_in = link;
	this->since = ++tree.changes;
	this->linked_key = this->key;
	/* So that owners change their minds meanwhile. */
	if (tree.changes % 16 == 0)
		sched_yield();
}

static void get(struct ldu_node *node)
{
	atomic_inc(&element(node)->references);
}

static void put(struct ldu_node *node)
{
	struct element *this = element(node);

	if (!atomic_dec_and_test(&this->references))
		return;
	if (this->is_in)
		fail("an element was freed that is in the tree");
	this->next = READ_ONCE(freed);
	while (!try_cmpxchg(&freed, &this->next, this))
		;
	__atomic_fetch_add(&gone, 1, __ATOMIC_RELAXED);
}

#ifdef CONFIG_LDU_RMAP_VERIFY
static bool is_linked(struct ldu_root *root, struct ldu_node *node)
{
	(void)root;
	return element(node)->is_in;
}

/* The tree has no order of its own. */
static bool check(struct ldu_root *root)
{
	(void)root;
	return true;
}
#endif

static const struct ldu_ops operations = {
	.rwsem = rwsem_of,
	.apply = apply,
	.get = get,
	.put = put,
#ifdef CONFIG_LDU_RMAP_VERIFY
	.is_linked = is_linked,
	.check = check,
#endif
};

static struct ldu_counts counts;
static struct ldu_tree kind = LDU_TREE_INIT(kind, "test", &operations, &counts);

static struct element *make(void)
{
	struct element *this = malloc(sizeof(*this));

	if (!this)
		fail("out of memory");
	ldu_node_init(&this->node);
	atomic_set(&this->references, 1);
	this->is_in = false;
	this->key = 0;
	__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
	return this;
}

/*
 * Links a new element, after another, or unlinks it; looks for walkers that
 * should be over.
 */
static void update(struct place *this, struct place *after, bool want)
{
	unsigned long begun = moment();
	bool is_long;
	int walker;

	if (want)
		__atomic_store_n(&this->element, make(), __ATOMIC_RELEASE);
	__atomic_fetch_add(&this->version, 1, __ATOMIC_SEQ_CST);
	ldu_begin();
	is_long = ldu_mark(&kind, &tree.root, &this->element->node,
			   after ? &after->element->node : NULL, want);
	ldu_settle(&kind, &tree.root, is_long);
	for (walker = 0; walker < WALKERS; walker++) {
		unsigned long since =
			__atomic_load_n(&walks[walker], __ATOMIC_SEQ_CST);

		if (since && since < begun)
			fail("an update has returned before a walk was over");
	}
	__atomic_fetch_add(&this->version, 1, __ATOMIC_SEQ_CST);
	if (!want)
		put(&this->element->node);
	__atomic_fetch_add(&updated, 1, __ATOMIC_RELAXED);
}

static unsigned int draw(unsigned int *state)
{
	*state = *state * 1103515245 + 12345;
	return *state >> 16;
}

/* A section that finds the log empty. */
static void apply_log(void)
{
	down_write(&tree.rwsem);
	ldu_write_locked(&kind, &tree.root);
	up_write(&tree.rwsem);
}

/*
 * A section that leaves the log alone. It changes the key of an element that is
 * to be in the tree; or it unlinks the element, if that is in the log and is to
 * go. Whether it has unlinked it.
 */
static bool change(struct place *place, bool is_to_go)
{
	struct element *this = place->element;
	bool has_gone = false;

	down_write(&tree.rwsem);
	ldu_begin_update(&tree.root);
	if (this->is_in == ldu_is_queued(&this->node))
		fail("an element is both in the tree and in the log, or in neither");
	sched_yield();
	if (!is_to_go) {
		this->key++;
		if (!ldu_is_queued(&this->node)) {
			this->linked_key = this->key;
			this->since = ++tree.changes;
		}
	} else if (ldu_is_queued(&this->node)) {
		__atomic_fetch_add(&place->version, 1, __ATOMIC_SEQ_CST);
		ldu_cancel(&kind, &tree.root, &this->node);
		__atomic_fetch_add(&place->version, 1, __ATOMIC_SEQ_CST);
		has_gone = true;
	}
	ldu_end_update(&tree.root);
	up_write(&tree.rwsem);
	if (has_gone) {
		put(&this->node);
		__atomic_fetch_add(&updated, 1, __ATOMIC_RELAXED);
	}
	return has_gone;
}

static void *updater(void *argument)
{
	struct family *families = argument;
	unsigned int random = (unsigned int)moment();
	int round;

	for (round = 0; round < ROUND; round++) {
		struct family *this = &families[draw(&random) % FAMILIES];

		update(&this->member[0], NULL, true);
		if (draw(&random) % 8 == 0)
			sched_yield();
		if (draw(&random) % 16 == 0)
			change(&this->member[0], false);
		update(&this->member[1], &this->member[0], true);
		if (draw(&random) % 4 == 0)
			sched_yield();
		if (draw(&random) % 16 || !change(&this->member[1], true))
			update(&this->member[1], NULL, false);
		update(&this->member[0], NULL, false);
	}
	return NULL;
}

static struct element *look(struct place *place, unsigned int before)
{
	struct element *this = __atomic_load_n(&place->element, __ATOMIC_ACQUIRE);
	unsigned int after = __atomic_load_n(&place->version, __ATOMIC_SEQ_CST);

	if (before != after || !this)
		return NULL;
	if (before % 4 == 2 && !this->is_in)
		fail("a walk has missed an element");
	if (before % 4 == 0 && this->is_in)
		fail("a walk has met an element that was unlinked");
	if (this->is_in && this->linked_key != this->key)
		fail("an element is in the tree by a key that it had");
	return this->is_in ? this : NULL;
}

static void walk(int walker, unsigned int *random)
{
	static __thread unsigned int versions[UPDATERS][FAMILIES][GENERATIONS];
	int u, f, g;

	for (u = 0; u < UPDATERS; u++)
		for (f = 0; f < FAMILIES; f++)
			for (g = 0; g < GENERATIONS; g++)
				versions[u][f][g] = __atomic_load_n(
					&tree.family[u][f].member[g].version,
					__ATOMIC_SEQ_CST);
	if (draw(random) % 2) {
		down_read(&tree.rwsem);
		ldu_read_locked(&kind, &tree.root);
	} else if (!down_read_trylock(&tree.rwsem) ||
		   !ldu_read_trylocked(&kind, &tree.root)) {
		return;
	}
	__atomic_store_n(&walks[walker], moment(), __ATOMIC_SEQ_CST);
	if (draw(random) % 4 == 0)
		sched_yield();
	for (u = 0; u < UPDATERS; u++)
		for (f = 0; f < FAMILIES; f++) {
			struct place *member = tree.family[u][f].member;
			unsigned int *before = versions[u][f];
			struct element *parent = look(&member[0], before[0]);
			struct element *child = look(&member[1], before[1]);

			if (parent && child && parent->since > child->since)
				fail("a child is before its parent");
		}
	__atomic_store_n(&walks[walker], 0, __ATOMIC_SEQ_CST);
	up_read(&tree.rwsem);
	__atomic_fetch_add(&walked, 1, __ATOMIC_RELAXED);
}

static void *walker(void *argument)
{
	int number = (int)(long)argument;
	unsigned int random = 99 + number;

	while (!READ_ONCE(is_over)) {
		walk(number, &random);
		if (draw(&random) % 16 == 0)
			ldu_work(&kind.work.work);
		if (draw(&random) % 2)
			sched_yield();
	}
	return NULL;
}

/* When all threads have ended, nothing is left in tree and log. */
static void finish_round(void)
{
	static struct place last;

	update(&last, NULL, true);
	apply_log();
	update(&last, NULL, false);
	ldu_retire(&kind, &tree.root);
	if (ldu_is_pending(&tree.root) || tree.root.is_active)
		fail("a root that was retired is not empty");
	if (made != gone)
		fail("an element is left");
	if (counts.of[LDU_LINK] != counts.of[LDU_UNLINK])
		fail("not all that was linked was unlinked");
	if (counts.of[LDU_PUSH] + counts.of[LDU_CANCEL] != updated)
		fail("an update was neither put into the log nor cancelled");
	while (freed) {
		struct element *next = freed->next;

		free(freed);
		freed = next;
	}
	memset(tree.family, 0, sizeof(tree.family));
}

static void run_round(void)
{
	pthread_t updaters[UPDATERS], walkers[WALKERS];
	long number;

	is_over = false;
	for (number = 0; number < UPDATERS; number++)
		pthread_create(&updaters[number], NULL, updater,
			       tree.family[number]);
	for (number = 0; number < WALKERS; number++)
		pthread_create(&walkers[number], NULL, walker, (void *)number);
	for (number = 0; number < UPDATERS; number++)
		pthread_join(updaters[number], NULL);
	WRITE_ONCE(is_over, true);
	for (number = 0; number < WALKERS; number++)
		pthread_join(walkers[number], NULL);
	finish_round();
}

int main(int count, char **arguments)
{
	time_t end = time(NULL) + (count > 1 ? atoi(arguments[1]) : 1);
	bool is_spread = false;

	ldu_root_init(&tree.root);
	init_rwsem(&tree.rwsem);
	/* Logs become so long now and then. */
	ldu_limit = 16;
	/* In turn: one list for all, and lists for CPUs. */
	do {
		ldu_nr_heads = is_spread ? HEADS : 0;
		run_round();
		is_spread = !is_spread;
	} while (time(NULL) < end);
	if (!counts.of[LDU_SPREAD])
		fail("no log got lists for CPUs");
	printf("%lu updates, %lu walks; %lu into the log, %lu cancelled, %lu linked, %lu for nothing, %lu redone; waited for %lu walks; %lu logs got lists for CPUs, %lu checked\n",
	       updated, walked, counts.of[LDU_PUSH], counts.of[LDU_CANCEL],
	       counts.of[LDU_LINK], counts.of[LDU_GARBAGE],
	       counts.of[LDU_REDO], counts.of[LDU_SETTLE_WAIT],
	       counts.of[LDU_SPREAD], counts.of[LDU_VERIFY]);
	return 0;
}
