/* Epochs and the hash table of Concurrency Kit. */

#include <ck_epoch.h>
#include <ck_ht.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

_Static_assert(sizeof(ck_epoch_entry_t) == 16, "the other side has room for two words");

/* A thread's record. Those of threads that have ended are used again, and freed with the domain. */
struct record {
	ck_epoch_record_t record;
	struct record *next;
	unsigned int retired;
};

struct domain {
	ck_epoch_t epoch;
	pthread_mutex_t lock;
	struct record *records;
};

static void *aligned(size_t size)
{
	void *memory;

	if (posix_memalign(&memory, CK_MD_CACHELINE, size))
		abort();
	return memory;
}

void *peer_ck_domain_new(void)
{
	struct domain *domain = aligned(sizeof(*domain));

	ck_epoch_init(&domain->epoch);
	pthread_mutex_init(&domain->lock, NULL);
	domain->records = NULL;
	return domain;
}

/* All threads have left. */
void peer_ck_domain_destroy(struct domain *domain)
{
	struct record *record = domain->records;

	while (record) {
		struct record *next = record->next;

		free(record);
		record = next;
	}
	pthread_mutex_destroy(&domain->lock);
	free(domain);
}

void *peer_ck_register(struct domain *domain)
{
	ck_epoch_record_t *used = ck_epoch_recycle(&domain->epoch, NULL);
	struct record *record;

	if (used)
		return used;
	record = aligned(sizeof(*record));
	record->retired = 0;
	ck_epoch_register(&domain->epoch, &record->record, NULL);
	pthread_mutex_lock(&domain->lock);
	record->next = domain->records;
	domain->records = record;
	pthread_mutex_unlock(&domain->lock);
	return record;
}

/* Waits until what the thread has retired is freed. */
void peer_ck_unregister(struct record *record)
{
	ck_epoch_barrier(&record->record);
	ck_epoch_unregister(&record->record);
}

void peer_ck_enter(struct record *record)
{
	ck_epoch_begin(&record->record, NULL);
}

void peer_ck_leave(struct record *record)
{
	ck_epoch_end(&record->record, NULL);
}

void peer_ck_retire(struct record *record, ck_epoch_entry_t *entry, ck_epoch_cb_t *release)
{
	ck_epoch_call(&record->record, entry, release);
	/* Polling looks at all threads' records. */
	if (++record->retired % 64 == 0)
		ck_epoch_poll(&record->record);
}

/* A hash table that one thread writes at a time. Keys are one more than the numbers: 0 is for an
   empty place. */

static void *table_malloc(size_t size)
{
	return malloc(size);
}

/* Of a table that has grown: readers may still be on the old one, which then stays. Tables are made
   large enough. */
static void table_free(void *memory, size_t size, bool deferred)
{
	(void)size;
	if (!deferred)
		free(memory);
}

static struct ck_malloc allocator = { .malloc = table_malloc, .free = table_free };

static void hash(ck_ht_hash_t *out, const void *key, size_t length, uint64_t seed)
{
	__uint128_t product = (__uint128_t)(*(const uint64_t *)key) * 0x9E3779B97F4A7C15u;

	(void)length;
	(void)seed;
	out->value = (uint64_t)(product >> 64) ^ (uint64_t)product;
}

void *peer_ck_ht_new(uint64_t keys)
{
	ck_ht_t *table = aligned(sizeof(*table));

	if (!ck_ht_init(table, CK_HT_MODE_DIRECT, hash, &allocator, 2 * keys, 1))
		abort();
	return table;
}

void peer_ck_ht_destroy(ck_ht_t *table)
{
	ck_ht_destroy(table);
	free(table);
}

bool peer_ck_ht_contains(ck_ht_t *table, uint64_t key)
{
	ck_ht_entry_t entry;
	ck_ht_hash_t h;

	key += 1;
	hash(&h, &key, sizeof(key), 0);
	ck_ht_entry_key_set_direct(&entry, key);
	return ck_ht_get_spmc(table, h, &entry);
}

bool peer_ck_ht_insert(ck_ht_t *table, uint64_t key)
{
	ck_ht_entry_t entry;
	ck_ht_hash_t h;

	key += 1;
	hash(&h, &key, sizeof(key), 0);
	/* Where a key before it was removed, version 0.7.1 puts a key in a second time. */
	ck_ht_entry_key_set_direct(&entry, key);
	if (ck_ht_get_spmc(table, h, &entry))
		return false;
	ck_ht_entry_set_direct(&entry, h, key, 1);
	return ck_ht_put_spmc(table, h, &entry);
}

bool peer_ck_ht_remove(ck_ht_t *table, uint64_t key)
{
	ck_ht_entry_t entry;
	ck_ht_hash_t h;

	key += 1;
	hash(&h, &key, sizeof(key), 0);
	ck_ht_entry_key_set_direct(&entry, key);
	return ck_ht_remove_spmc(table, h, &entry);
}
