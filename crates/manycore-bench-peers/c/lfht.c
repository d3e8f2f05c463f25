/* The lock-free hash table of liburcu, as a set of numbers. */

/* The functions without their flavour in their names. */
#define URCU_API_MAP
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <urcu/urcu-memb.h>
#include <urcu/call-rcu.h>
#include <urcu/rculfhash.h>

struct entry {
	struct cds_lfht_node node;
	struct rcu_head head;
	uint64_t key;
};

static struct entry *entry_of(struct cds_lfht_node *node)
{
	return caa_container_of(node, struct entry, node);
}

static void release(struct rcu_head *head)
{
	free(caa_container_of(head, struct entry, head));
}

static int match(struct cds_lfht_node *node, const void *key)
{
	return entry_of(node)->key == *(const uint64_t *)key;
}

/* The table looks at the lower bits. */
static unsigned long hash(uint64_t key)
{
	__uint128_t product = (__uint128_t)key * 0x9E3779B97F4A7C15u;

	return (unsigned long)(product >> 64) ^ (unsigned long)product;
}

void *peer_lfht_new(unsigned long buckets)
{
	unsigned long size = 1;

	while (size < buckets)
		size *= 2;
	return cds_lfht_new(size, 1, 0, CDS_LFHT_AUTO_RESIZE, NULL);
}

static struct cds_lfht_node *find(struct cds_lfht *table, uint64_t key)
{
	struct cds_lfht_iter iter;

	cds_lfht_lookup(table, hash(key), match, &key, &iter);
	return cds_lfht_iter_get_node(&iter);
}

bool peer_lfht_contains(void *table, uint64_t key)
{
	bool found;

	rcu_read_lock();
	found = find(table, key) != NULL;
	rcu_read_unlock();
	return found;
}

bool peer_lfht_insert(void *table, uint64_t key)
{
	struct entry *entry = malloc(sizeof(*entry));
	bool added;

	if (!entry)
		abort();
	cds_lfht_node_init(&entry->node);
	entry->key = key;
	rcu_read_lock();
	added = cds_lfht_add_unique(table, hash(key), match, &key, &entry->node) == &entry->node;
	rcu_read_unlock();
	if (!added)
		free(entry);
	return added;
}

bool peer_lfht_remove(void *table, uint64_t key)
{
	struct cds_lfht_node *node;
	bool removed;

	rcu_read_lock();
	node = find(table, key);
	removed = node && cds_lfht_del(table, node) == 0;
	if (removed)
		call_rcu(&entry_of(node)->head, release);
	rcu_read_unlock();
	return removed;
}

/* No thread uses it any more. The calling thread is registered. */
void peer_lfht_clear(void *table)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	rcu_read_lock();
	cds_lfht_first(table, &iter);
	while ((node = cds_lfht_iter_get_node(&iter))) {
		cds_lfht_next(table, &iter);
		if (cds_lfht_del(table, node) == 0)
			call_rcu(&entry_of(node)->head, release);
	}
	rcu_read_unlock();
	rcu_barrier();
}

/* Empty. The calling thread is not registered. */
void peer_lfht_destroy(void *table)
{
	if (cds_lfht_destroy(table, NULL))
		abort();
}
