/* Waits for locks, added up where they happen.
 *
 * A wait begins and ends in the context of one task, or in an interrupt that came upon it: each
 * task has a `task_state` with a short stack of waits that have begun. When one ends, it is added to a sum,
 * and the sums are all that anybody reads.
 *
 * A wait that finds no room is dropped, and counted. So are those that began before this was
 * loaded, or that the kernel did not call us for because we were running already on that CPU; the
 * last are the kernel's to count. */
#include "kernel.h"
#include "sum.h"

/* Waits that one task can be in at a time: its own, and those of interrupts. */
#define NESTED 4
/* Calls of a stack that are kept, innermost first. */
#define CALLS 48
/* To find them takes 10 us and more where caches are cold, many times what most wait for a
 * spinlock: of those waits that a CPU sees for one lock, only a sample of the calls is found, and
 * stands for the others. */
#define SPINS_PER_STACK 8
/* Spinlocks that are remembered for this, by CPU: a power of two. */
#define REMEMBERED 1024
#define OWNER_CALLS 16
/* What the tracepoints say of a wait. */
#define LCB_F_SPIN 1
#define LCB_F_MUTEX 32

/* Whose waits count. */
enum { SYSTEM, COMMAND, PROCESS };
const volatile __u32 scope = SYSTEM;
/* Where the kernel's own variables are. */
const volatile __u64 image_start = 0;
const volatile __u64 image_end = 0;
/* The namespace in which processes have the numbers that the reader knows, by its inode; 0 for the
   first one. */
const volatile __u32 namespace = 0;
/* The one process that is watched, by that number; 0 if it is not one. */
const volatile __u32 watched = 0;

/* Which of two maps new stacks go into. The reader counts it up once that one holds many, and has
   emptied the other. */
volatile __u32 turn = 0;
/* What a wait has of its stack: its number there, and above it whose turn it was. */
#define STACK_BITS 14
#define TURN_BITS 16

/* Locks that are known by their place in something that the waiting task owns. Others are known by
 * their address, if they are the kernel's variables, or have none of these. */
enum { UNKNOWN, MMAP_LOCK, SIGLOCK, FILE_LOCK, ALLOC_LOCK, PI_LOCK, PAGE_TABLE_LOCK };

/* The values of `followed`. */
#define ITSELF 1
#define ITS_CHILDREN 2

struct wait {
	__u64 lock;
	__u64 identity;
	__u64 began;
	__u64 phase_began;
	__u64 spun;
	__u64 owner;
	__s32 stack;
	__u32 flags;
};

struct task_state {
	__u32 followed;
	__u32 depth;
	struct wait waits[NESTED];
};

struct key {
	__u64 identity;
	/* Of the owner's calls; 0 if unknown. */
	__u64 owner;
	__u64 cgroup;
	__s32 stack;
	__u32 flags;
	char task[16];
};

struct owner_calls {
	__u64 calls[OWNER_CALLS];
};

/* A process while it runs one program: exec counts them. */
struct process {
	__u32 number;
	__u32 programs;
};

struct totals {
	__u64 waits;
	__u64 dropped;
	__u64 without_stack;
	/* Sleeps in processes that there was no room for. */
	__u64 without_maps;
	/* Tasks that were to be followed, and for whose state there was no room. */
	__u64 unfollowed;
};

struct {
	NUMBER(type, BPF_MAP_TYPE_TASK_STORAGE);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct task_state);
} task_states SEC(".maps");

struct stacks {
	NUMBER(type, BPF_MAP_TYPE_STACK_TRACE);
	NUMBER(max_entries, 1 << STACK_BITS);
	NUMBER(key_size, sizeof(__u32));
	NUMBER(value_size, CALLS * sizeof(__u64));
};
struct stacks even_stacks SEC(".maps");
struct stacks odd_stacks SEC(".maps");

struct remembered {
	__u64 lock;
	__s32 stack;
	/* Waits for which it still stands. */
	__u32 left;
};
struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, REMEMBERED);
	TYPE(key, __u32);
	TYPE(value, struct remembered);
} spun SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 16384);
	TYPE(key, struct key);
	TYPE(value, struct sum);
} sums SEC(".maps");

/* By a number made from them: stack maps take the calls of the current task only. */
struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 4096);
	TYPE(key, __u64);
	TYPE(value, struct owner_calls);
} owners SEC(".maps");

/* Room that a program's stack does not have. A program does not interrupt itself, so each needs
   one. */
struct scratch {
	struct sum sum;
	struct owner_calls owner;
};
struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, 3);
	TYPE(key, __u32);
	TYPE(value, struct scratch);
} scratches SEC(".maps");
enum { OF_BEGIN, OF_END, OF_SWITCH };

struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, 2);
	TYPE(key, __u32);
	TYPE(value, struct totals);
} counts SEC(".maps");
enum { OF_LOCKS, OF_FUTEXES };

INLINE struct totals *totals(__u32 whose)
{
	return bpf_map_lookup_elem(&counts, &whose);
}

INLINE struct scratch *scratch(__u32 whose)
{
	return bpf_map_lookup_elem(&scratches, &whose);
}

#define COUNT(whose, field, by)                                                                    \
	({                                                                                         \
		struct totals *all = totals(whose);                                                \
		if (all)                                                                           \
			__sync_fetch_and_add(&all->field, by);                                     \
	})

/* The state of a task whose waits count; none of another, or where no thread has waited and `flags` do
   not say to make it. */
INLINE struct task_state *task_state_of(struct task_struct *task, __u64 flags)
{
	struct task_state *task_state;

	if (scope == PROCESS) {
		task_state = bpf_task_storage_get(&task_states, task->group_leader, 0, 0);
		if (!task_state || !(task_state->followed & ITSELF))
			return 0;
	} else if (scope == COMMAND) {
		task_state = bpf_task_storage_get(&task_states, task, 0, 0);
		return task_state && (task_state->followed & ITSELF) ? task_state : 0;
	}
	task_state = bpf_task_storage_get(&task_states, task, 0, flags);
	if (!task_state && flags) {
		COUNT(OF_LOCKS, waits, 1);
		COUNT(OF_LOCKS, dropped, 1);
	}
	return task_state;
}

INLINE __u64 identity_of(struct task_struct *task, __u64 lock)
{
	struct mm_struct *mm = task->mm;

	if (lock >= image_start && lock < image_end)
		return lock;
	if (lock == (__u64)&task->pi_lock)
		return PI_LOCK;
	if (lock == (__u64)&task->alloc_lock)
		return ALLOC_LOCK;
	if (lock == (__u64)&task->sighand->siglock)
		return SIGLOCK;
	if (lock == (__u64)&task->files->file_lock)
		return FILE_LOCK;
	if (mm && lock == (__u64)&mm->mmap_lock)
		return MMAP_LOCK;
	if (mm && lock == (__u64)&mm->page_table_lock)
		return PAGE_TABLE_LOCK;
	return UNKNOWN;
}

/* The number of the calls that a sleeping lock's owner is in, if it is off its CPU: those of one
 * that runs change while one looks. */
INLINE __u64 owner_of(__u64 lock, __u32 flags)
{
	const void *place = flags & LCB_F_MUTEX ? (const void *)&((struct mutex *)lock)->owner.counter :
						  (const void *)&((struct rw_semaphore *)lock)->owner.counter;
	struct scratch *room = scratch(OF_BEGIN);
	struct task_struct *owner = 0;
	__u64 number = 0;
	int pid = 0;
	long size;

	if (!room || !bpf_task_from_pid || bpf_probe_read_kernel(&owner, sizeof(owner), place))
		return 0;
	/* Both locks keep flags in the lowest bits. Of a rwsem that readers have it names the last of
	   them. */
	owner = (struct task_struct *)((__u64)owner & ~7ULL);
	if (!owner || bpf_probe_read_kernel(&pid, sizeof(pid), &owner->pid))
		return 0;
	owner = bpf_task_from_pid(pid);
	if (!owner)
		return 0;
	size = bpf_get_task_stack(owner, room->owner.calls, sizeof(room->owner.calls), 0);
	bpf_task_release(owner);
	if (size <= 0)
		return 0;
	for (int at = 0; at < OWNER_CALLS; at++) {
		if (at * 8 >= size)
			room->owner.calls[at] = 0;
		number = (number ^ room->owner.calls[at]) * 0x9e3779b97f4a7c15ULL;
		number ^= number >> 29;
	}
	if (bpf_map_update_elem(&owners, &number, &room->owner, BPF_ANY))
		return 0;
	return number;
}

/* The sum of a key, made if need be; none if there is no room. */
INLINE struct sum *sum_of(void *map, const void *key, __u32 whose)
{
	struct sum *sum = bpf_map_lookup_elem(map, key);
	struct scratch *room;

	if (sum)
		return sum;
	room = scratch(whose);
	if (!room)
		return 0;
	__builtin_memset(&room->sum, 0, sizeof(room->sum));
	/* Another CPU may have been first. */
	bpf_map_update_elem(map, key, &room->sum, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

INLINE __u32 whose_turn(void)
{
	return turn & ((1 << TURN_BITS) - 1);
}

INLINE __s32 stack_of(void *context)
{
	__u32 now = whose_turn();
	__s32 number = now & 1 ? bpf_get_stackid(context, &odd_stacks, BPF_F_FAST_STACK_CMP) :
				 bpf_get_stackid(context, &even_stacks, BPF_F_FAST_STACK_CMP);

	return number < 0 ? number : number | now << STACK_BITS;
}

/* The same, or that of an earlier wait for this lock. */
INLINE __s32 stack_of_spin(void *context, __u64 lock)
{
	__u32 at = lock * 0x9e3779b97f4a7c15ULL >> 40 & (REMEMBERED - 1);
	struct remembered *remembered = bpf_map_lookup_elem(&spun, &at);

	if (!remembered)
		return stack_of(context);
	if (remembered->lock == lock && remembered->left &&
	    remembered->stack >> STACK_BITS == whose_turn()) {
		remembered->left--;
		return remembered->stack;
	}
	remembered->lock = lock;
	remembered->stack = stack_of(context);
	remembered->left = remembered->stack < 0 ? 0 : SPINS_PER_STACK - 1;
	return remembered->stack;
}

#include "futex.h"

SEC("tp_btf/contention_begin")
int contention_begin(__u64 *context)
{
	__u64 lock = context[0];
	__u32 flags = context[1];
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *task_state = task_state_of(task, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct wait *wait;
	__u64 now;
	__u32 depth;

	if (!task_state)
		return 0;
	now = bpf_ktime_get_ns();
	depth = task_state->depth;
	if (depth && depth <= NESTED) {
		wait = &task_state->waits[(depth - 1) & (NESTED - 1)];
		/* A mutex is first spun for, then slept for, and says so each time. */
		if (wait->lock == lock && (wait->flags & flags & LCB_F_MUTEX)) {
			if (wait->flags & LCB_F_SPIN)
				wait->spun += now - wait->phase_began;
			wait->phase_began = now;
			wait->flags = flags;
			return 0;
		}
		/* No thread waits for any other lock twice at a time: we were not told of the end of the first. */
		if (wait->lock == lock) {
			COUNT(OF_LOCKS, dropped, 1);
			COUNT(OF_LOCKS, waits, 1);
			depth--;
		}
	}
	/* Only a task itself sleeps, and only for one lock: if others have not ended, we were not told of
	   their end. */
	if (depth >= NESTED || (depth && !(flags & LCB_F_SPIN))) {
		COUNT(OF_LOCKS, dropped, depth);
		COUNT(OF_LOCKS, waits, depth);
		depth = 0;
	}
	FORGET(depth);
	wait = &task_state->waits[depth & (NESTED - 1)];
	wait->lock = lock;
	wait->identity = identity_of(task, lock);
	wait->flags = flags;
	wait->spun = 0;
	wait->stack = (flags & (LCB_F_SPIN | LCB_F_MUTEX)) == LCB_F_SPIN ? stack_of_spin(context, lock) :
									   stack_of(context);
	/* Percpu rwsems and rt-mutexes have no owner at the place looked at, nor have locks that spin. */
	wait->owner = !(flags & ~(LCB_F_MUTEX | LCB_F_SPIN | 2 | 4)) &&
				      (flags & LCB_F_MUTEX || !(flags & LCB_F_SPIN)) ?
			      owner_of(lock, flags) :
			      0;
	task_state->depth = depth + 1;
	/* The time that this took is not the lock's. */
	wait->began = wait->phase_began = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/contention_end")
int contention_end(__u64 *context)
{
	__u64 lock = context[0];
	struct task_state *task_state = task_state_of(bpf_get_current_task_btf(), 0);
	struct wait *wait = 0;
	struct key key = {};
	struct sum *sum;
	__u64 now, ns;
	__u32 depth;

	if (!task_state || !task_state->depth)
		return 0;
	now = bpf_ktime_get_ns();
	depth = task_state->depth;
#pragma unroll
	for (int at = NESTED - 1; at >= 0; at--) {
		if (!wait && at < depth && task_state->waits[at].lock == lock) {
			wait = &task_state->waits[at];
			task_state->depth = at;
		}
	}
	if (!wait)
		return 0;
	ns = now - wait->began;
	if (wait->flags & LCB_F_SPIN)
		wait->spun += now - wait->phase_began;
	key.identity = wait->identity;
	key.owner = wait->owner;
	key.cgroup = bpf_get_current_cgroup_id();
	key.stack = wait->stack;
	key.flags = wait->flags & LCB_F_MUTEX ? LCB_F_MUTEX : wait->flags;
	bpf_get_current_comm(key.task, sizeof(key.task));
	COUNT(OF_LOCKS, waits, 1);
	if (key.stack < 0) {
		COUNT(OF_LOCKS, without_stack, 1);
		key.stack = -1;
	}
	sum = sum_of(&sums, &key, OF_END);
	if (sum)
		add(sum, lock, ns, wait->spun);
	else
		COUNT(OF_LOCKS, dropped, 1);
	return 0;
}

INLINE void follow(struct task_struct *task, __u32 followed)
{
	struct task_state *task_state = bpf_task_storage_get(&task_states, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (task_state)
		task_state->followed = followed;
	else
		COUNT(OF_LOCKS, unfollowed, 1);
}

/* A child of what is followed is followed, before it runs. */
SEC("tp_btf/sched_process_fork")
int sched_process_fork(__u64 *context)
{
	struct task_struct *parent = (struct task_struct *)context[0];
	struct task_struct *child = (struct task_struct *)context[1];
	struct task_state *task_state = bpf_task_storage_get(&task_states, parent, 0, 0);

	if (!task_state)
		task_state = bpf_task_storage_get(&task_states, parent->group_leader, 0, 0);
	if (!task_state || !(task_state->followed & ITS_CHILDREN))
		return 0;
	/* Another thread of who follows, and is not followed. */
	if (!(task_state->followed & ITSELF) && child->tgid == parent->tgid)
		return 0;
	follow(child, ITSELF | ITS_CHILDREN);
	return 0;
}

/* A thread that executes a program becomes the first one of its process, and the one that was
   watched ends. */
SEC("tp_btf/sched_process_exec")
int sched_process_exec(__u64 *context)
{
	struct task_struct *task = (struct task_struct *)context[0];

	if (number_of(task) == watched)
		follow(task, ITSELF);
	return 0;
}

char terms[] SEC("license") = "Dual MIT/GPL";
