/* Waits for words of the program's own, by the futex call: locks that are inlined, as those of
 * Rust, Go and InnoDB are.
 *
 * A thread waits from when it goes off its CPU inside of the call, to sleep, until it is on a CPU
 * again. So context switches cost something, and system calls do not: a tracepoint on those makes
 * each of them longer, in all processes. A call that finds the word changed does not sleep, and is
 * no wait.
 *
 * Nothing here makes room as it goes: it runs with the scheduler's locks held, where old kernels
 * cannot. */
#pragma once

/* What a system call has in its registers: which it is, its first three arguments, and where it is
 * made. LEAF is where a function without a frame, as libc's `syscall` is, has its return address. */
#ifdef __TARGET_ARCH_arm64
#define FUTEX_CALL 98
#define CALL(registers) (registers)->syscallno
#define FIRST(registers) (registers)->orig_x0
#define SECOND(registers) (registers)->regs[1]
#define THIRD(registers) (registers)->regs[2]
#define PLACE(registers) (registers)->pc
#define LEAF(registers) (registers)->regs[30]
#else
#define FUTEX_CALL 202
#define CALL(registers) (registers)->orig_ax
#define FIRST(registers) (registers)->di
#define SECOND(registers) (registers)->si
#define THIRD(registers) (registers)->dx
#define PLACE(registers) (registers)->ip
#define LEAF(registers) top_of_stack((registers)->sp)
#endif

/* What a sleeping task's state has. */
#define TASK_INTERRUPTIBLE 1

#define FUTEX_PRIVATE 128
#define FUTEX_CLOCK_REALTIME 256
/* Of locks whose owner gets the priority of who waits: the kernel knows that they are locks, and
   asks for no value. */
#define FUTEX_LOCK_PI 6
#define FUTEX_LOCK_PI2 13

/* Flags of a place. The word is not a lock's, as far as its value tells. */
#define EVENT 1

/* What a full map says: -E2BIG. */
#define NO_ROOM -7

/* The depth to which nested namespaces are searched for the reader's, from the first one on. */
#define NAMESPACES 8

struct place {
	__u64 word;
	/* Where the call is made. */
	__u64 ip;
	/* Who called the function that makes it, if that is known; or 0. */
	__u64 caller;
	struct process process;
	/* The calls as frame pointers tell them. */
	__s32 stack;
	__u32 flags;
};

/* Read, and of threads that slept before written, by futexes.rs. */
struct sleep {
	struct place place;
	__u64 began;
};

/* Threads that sleep now, by number. */
struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 16384);
	TYPE(key, __u32);
	TYPE(value, struct sleep);
} sleeping SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_STACK_TRACE);
	NUMBER(max_entries, 8192);
	NUMBER(key_size, sizeof(__u32));
	NUMBER(value_size, CALLS * sizeof(__u64));
} user_stacks SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 8192);
	TYPE(key, struct place);
	TYPE(value, struct sum);
} futexes SEC(".maps");

/* Processes in which somebody has slept so: their maps are to be read while they live, and are this
 * program's if its stack still starts there. As many as `PROCESSES` in sleepers.rs. */
struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 1024);
	TYPE(key, struct process);
	TYPE(value, __u64);
} sleepers SEC(".maps");

INLINE int is_followed(struct task_struct *task)
{
	struct task_state *task_state = bpf_task_storage_get(&task_states, scope == PROCESS ? task->group_leader : task, 0, 0);

	return task_state && (task_state->followed & ITSELF);
}

/* Whether the word is one that waits for an event, and not a lock's. No thread sleeps for a lock that
 * is free, which nearly all say by zero; counters of wake-ups, semaphores and Go's notes begin with
 * it. Rust's parking writes -1. And the words of other processes are, but for process-shared locks,
 * which have 2, those of threads that somebody joins. */
INLINE __u32 flags_of(__u32 operation, __u32 value)
{
	__u32 command = operation & ~(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME);

	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2)
		return 0;
	if (value == 0 || value == ~0U)
		return EVENT;
	return (operation & FUTEX_PRIVATE) || value == 2 ? 0 : EVENT;
}

#ifdef __TARGET_ARCH_arm64
typedef __u32 before_return;
/* bl; blr and its forms that authenticate the address. */
#define IS_CALL(before) (((before) & 0xfc000000) == 0x94000000 || ((before) & 0xfefff000) == 0xd63f0000)
#else
typedef struct {
	unsigned char byte[6];
} before_return;
/* call near; call through a word that is relative to the instruction; call through a register. */
#define IS_CALL(before)                                                                                      \
	((before).byte[1] == 0xe8 || ((before).byte[0] == 0xff && (before).byte[1] == 0x15) ||               \
	 ((before).byte[4] == 0xff && ((before).byte[5] & 0xf8) == 0xd0))

INLINE __u64 top_of_stack(__u64 sp)
{
	__u64 top = 0;

	return bpf_probe_read_user(&top, sizeof(top), (const void *)sp) ? 0 : top;
}
#endif

/* An address, if there is a call right before it: frame pointers skip who called a function that
 * has no frame. On Arm it may be an earlier call in the function itself, which the reader leaves
 * out. */
INLINE __u64 caller_if(__u64 leaf)
{
	before_return before;

	if (bpf_probe_read_user(&before, sizeof(before), (const void *)(leaf - sizeof(before))))
		return 0;
	return IS_CALL(before) ? leaf : 0;
}

/* The number that a task, or a process by its leader, has for the reader; 0 if it has none
   there. */
INLINE __u32 number_of(struct task_struct *task)
{
	struct pid *pid;

	if (!namespace)
		return task->pid;
	pid = task->thread_pid;
	if (!pid)
		return 0;
#pragma unroll
	for (__u32 level = 0; level < NAMESPACES; level++) {
		const void *place = (const char *)&pid->numbers + level * 2 * sizeof(__u64);
		struct pid_namespace *of = 0;
		__u32 inode = 0, number = 0;

		if (level > pid->level)
			return 0;
		/* A number and, in the next word, whose it is. */
		if (bpf_probe_read_kernel(&number, sizeof(number), place) ||
		    bpf_probe_read_kernel(&of, sizeof(of), place + sizeof(__u64)) ||
		    bpf_probe_read_kernel(&inode, sizeof(inode), &of->ns.inum))
			return 0;
		if (inode == namespace)
			return number;
	}
	return 0;
}

INLINE void falls_asleep(void *context, struct task_struct *task)
{
	struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(task);
	struct sleep sleep = {};
	struct mm_struct *mm = task->mm;
	__u64 stack = mm ? mm->start_stack : 0;
	__u32 number;

	if (CALL(registers) != FUTEX_CALL || !is_followed(task))
		return;
	sleep.place.word = FIRST(registers);
	sleep.place.ip = PLACE(registers);
	sleep.place.caller = caller_if(LEAF(registers));
	sleep.place.process.number = number_of(task->group_leader);
	sleep.place.process.programs = task->self_exec_id;
	sleep.place.stack =
		bpf_get_stackid(context, &user_stacks, BPF_F_USER_STACK | BPF_F_FAST_STACK_CMP);
	if (sleep.place.stack < 0)
		sleep.place.stack = -1;
	sleep.place.flags = flags_of(SECOND(registers), THIRD(registers));
	sleep.began = bpf_ktime_get_ns();
	number = number_of(task);
	if (!bpf_map_lookup_elem(&sleepers, &sleep.place.process) &&
	    bpf_map_update_elem(&sleepers, &sleep.place.process, &stack, BPF_NOEXIST) == NO_ROOM)
		COUNT(OF_FUTEXES, without_maps, 1);
	if (!number || bpf_map_update_elem(&sleeping, &number, &sleep, BPF_ANY)) {
		COUNT(OF_FUTEXES, waits, 1);
		COUNT(OF_FUTEXES, dropped, 1);
	}
}

INLINE void wakes_up(struct task_struct *task)
{
	__u32 number = number_of(task);
	struct sleep *sleep = bpf_map_lookup_elem(&sleeping, &number);
	struct sum *sum;

	if (!sleep)
		return;
	COUNT(OF_FUTEXES, waits, 1);
	if (sleep->place.stack < 0)
		COUNT(OF_FUTEXES, without_stack, 1);
	sum = sum_of(&futexes, &sleep->place, OF_SWITCH);
	if (sum)
		add(sum, sleep->place.word, bpf_ktime_get_ns() - sleep->began, 0);
	else
		COUNT(OF_FUTEXES, dropped, 1);
	bpf_map_delete_elem(&sleeping, &number);
}

SEC("tp_btf/sched_switch")
int sched_switch(__u64 *context)
{
	__u32 preempted = context[0] & 1, state = context[3];

	wakes_up((struct task_struct *)context[2]);
	if (!preempted && (state & TASK_INTERRUPTIBLE))
		falls_asleep(context, (struct task_struct *)context[1]);
	return 0;
}
