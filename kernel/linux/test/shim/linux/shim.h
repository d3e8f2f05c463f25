/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LDU_SHIM_H
#define LDU_SHIM_H
/*
 * What mm/ldu.c uses of the kernel, for a program: enough for tests of it, and
 * no more. Barriers are at least as strong as the kernel promises, and not
 * stronger where the C language can say it.
 */

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define __read_mostly
#define __percpu
#define __rcu
#define HZ 1000
#define SMP_CACHE_BYTES 64

#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value) __atomic_store_n(&(x), (value), __ATOMIC_RELAXED)
#define smp_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_acquire__after_ctrl_dep() smp_rmb()
#define smp_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, value) \
	__atomic_store_n((p), (value), __ATOMIC_RELEASE)
#define try_cmpxchg(p, old, new) \
	__atomic_compare_exchange_n((p), (old), (new), false, \
				    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)

#define WARN_ON_ONCE(condition)						\
	do {								\
		if (condition) {					\
			fprintf(stderr, "%s:%d: %s\n", __FILE__,	\
				__LINE__, #condition);			\
			abort();					\
		}							\
	} while (0)

typedef struct {
	int counter;
} atomic_t;

static inline int atomic_read(atomic_t *v)
{
	return READ_ONCE(v->counter);
}

static inline int atomic_read_acquire(atomic_t *v)
{
	return __atomic_load_n(&v->counter, __ATOMIC_ACQUIRE);
}

static inline void atomic_set(atomic_t *v, int value)
{
	WRITE_ONCE(v->counter, value);
}

static inline int atomic_cmpxchg(atomic_t *v, int old, int new)
{
	try_cmpxchg(&v->counter, &old, new);
	return old;
}

static inline bool atomic_try_cmpxchg(atomic_t *v, int *old, int new)
{
	return try_cmpxchg(&v->counter, old, new);
}

static inline void atomic_inc(atomic_t *v)
{
	__atomic_fetch_add(&v->counter, 1, __ATOMIC_RELAXED);
}

static inline bool atomic_dec_and_test(atomic_t *v)
{
	return __atomic_fetch_sub(&v->counter, 1, __ATOMIC_SEQ_CST) == 1;
}

struct llist_node {
	struct llist_node *next;
};

struct llist_head {
	struct llist_node *first;
};

static inline void init_llist_head(struct llist_head *head)
{
	head->first = NULL;
}

static inline bool llist_empty(struct llist_head *head)
{
	return READ_ONCE(head->first) == NULL;
}

static inline struct llist_node *llist_del_all(struct llist_head *head)
{
	return __atomic_exchange_n(&head->first, NULL, __ATOMIC_SEQ_CST);
}

static inline struct llist_node *llist_reverse_order(struct llist_node *head)
{
	struct llist_node *reversed = NULL;

	while (head) {
		struct llist_node *next = head->next;

		head->next = reversed;
		reversed = head;
		head = next;
	}
	return reversed;
}

#define GFP_NOWAIT 0
#define __GFP_NOWARN 0
#define kcalloc(number, size, flags) calloc(number, size)

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD_INIT(name) { &(name), &(name) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)
#define list_first_entry(head, type, member) \
	container_of((head)->next, type, member)
#define list_for_each_entry(entry, head, member)			\
	for (entry = list_first_entry(head, typeof(*entry), member);	\
	     &entry->member != (head);					\
	     entry = list_first_entry(&entry->member, typeof(*entry), member))

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	WRITE_ONCE(list->next, list);
	WRITE_ONCE(list->prev, list);
}

static inline bool list_empty(struct list_head *head)
{
	return READ_ONCE(head->next) == head;
}

static inline bool list_empty_careful(struct list_head *head)
{
	struct list_head *next = __atomic_load_n(&head->next, __ATOMIC_ACQUIRE);

	return next == head && READ_ONCE(head->prev) == next;
}

static inline void list_del_entry(struct list_head *entry)
{
	WRITE_ONCE(entry->next->prev, entry->prev);
	WRITE_ONCE(entry->prev->next, entry->next);
}

static inline void list_add_tail(struct list_head *new, struct list_head *head)
{
	WRITE_ONCE(new->next, head);
	WRITE_ONCE(new->prev, head->prev);
	WRITE_ONCE(head->prev->next, new);
	WRITE_ONCE(head->prev, new);
}

static inline void list_move_tail(struct list_head *entry,
				  struct list_head *head)
{
	list_del_entry(entry);
	list_add_tail(entry, head);
}

static inline void list_del_init(struct list_head *entry)
{
	list_del_entry(entry);
	INIT_LIST_HEAD(entry);
}

static inline void list_del_init_careful(struct list_head *entry)
{
	list_del_entry(entry);
	WRITE_ONCE(entry->prev, entry);
	smp_store_release(&entry->next, entry);
}

static inline void list_splice_init(struct list_head *from,
				    struct list_head *to)
{
	while (!list_empty(from))
		list_move_tail(from->next, to);
}

/* -1 with a writer, else the number of readers. */
struct rw_semaphore {
	long count;
};

static inline void init_rwsem(struct rw_semaphore *sem)
{
	sem->count = 0;
}

static inline bool rwsem_is_locked(struct rw_semaphore *sem)
{
	return READ_ONCE(sem->count) != 0;
}

static inline bool rwsem_swap(struct rw_semaphore *sem, long from, long to)
{
	/* The kernel's are acquire and release: full barriers are ours. */
	return __atomic_compare_exchange_n(&sem->count, &from, to, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline bool down_write_trylock(struct rw_semaphore *sem)
{
	return rwsem_swap(sem, 0, -1);
}

static inline void down_write(struct rw_semaphore *sem)
{
	while (!down_write_trylock(sem))
		sched_yield();
}

static inline bool down_read_trylock(struct rw_semaphore *sem)
{
	long count = READ_ONCE(sem->count);

	return count >= 0 && rwsem_swap(sem, count, count + 1);
}

static inline void down_read(struct rw_semaphore *sem)
{
	while (!down_read_trylock(sem))
		sched_yield();
}

static inline void up_read(struct rw_semaphore *sem)
{
	__atomic_fetch_sub(&sem->count, 1, __ATOMIC_RELEASE);
}

static inline void up_write(struct rw_semaphore *sem)
{
	smp_store_release(&sem->count, 0L);
}

static inline void downgrade_write(struct rw_semaphore *sem)
{
	smp_store_release(&sem->count, 1L);
}

static inline void rwsem_assert_held_write(struct rw_semaphore *sem)
{
	WARN_ON_ONCE(READ_ONCE(sem->count) != -1);
}

typedef struct {
	bool taken;
} spinlock_t;

#define __SPIN_LOCK_UNLOCKED(name) { false }

static inline void spin_lock_init(spinlock_t *lock)
{
	lock->taken = false;
}

static inline void spin_lock(spinlock_t *lock)
{
	while (__atomic_test_and_set(&lock->taken, __ATOMIC_ACQUIRE))
		sched_yield();
}

static inline void spin_unlock(spinlock_t *lock)
{
	__atomic_clear(&lock->taken, __ATOMIC_RELEASE);
}

struct work_struct {
	char nothing;
};

struct delayed_work {
	struct work_struct work;
};

#define __DELAYED_WORK_INITIALIZER(name, function, flags) { { 0 } }

static inline struct delayed_work *to_delayed_work(struct work_struct *work)
{
	return container_of(work, struct delayed_work, work);
}

/* The test calls ldu_work() itself. */
static inline bool schedule_delayed_work(struct delayed_work *work,
					 unsigned long delay)
{
	(void)work;
	(void)delay;
	return true;
}

/* The test gives memory back when no thread works. */
static inline void rcu_read_lock(void)
{
}

static inline void rcu_read_unlock(void)
{
}

#define RCU_INIT_POINTER(p, value) WRITE_ONCE(p, value)
#define rcu_assign_pointer(p, value) smp_store_release(&(p), value)
/* The kernel's has no barrier, but for what hangs on the address. */
#define rcu_dereference_raw(p) READ_ONCE(p)
#define rcu_access_pointer(p) READ_ONCE(p)
/* Only the end of a root does this. */
#define kvfree_rcu_mightsleep(p) free(p)

/* Threads move to another CPU all the time. */
static inline unsigned int raw_smp_processor_id(void)
{
	static __thread unsigned int cpu;

	return cpu++ / 3;
}

static inline bool need_resched(void)
{
	return false;
}

static inline void cond_resched(void)
{
}

/* One CPU's counts, for all threads. */
#define this_cpu_add(place, many) \
	__atomic_fetch_add(&(place), (many), __ATOMIC_RELAXED)

#endif
