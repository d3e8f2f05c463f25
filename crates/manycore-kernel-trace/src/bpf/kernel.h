/* What the programs here need of the kernel: the fields that they read, and the functions that they
 * call.
 *
 * Each structure has the kernel's name and only the fields used here. Where they really are, the
 * loader finds out from the running kernel's type information (CO-RE), so that one object serves
 * every kernel. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* The compiler forgets what it knows of a variable. It would leave out a mask that it knows to change
 * nothing, by which the verifier knows the bound. */
#define FORGET(variable) asm volatile("" : "+r"(variable))

/* Maps are described by types: the numbers are array lengths. */
#define NUMBER(name, value) int (*name)[value]
#define TYPE(name, value) typeof(value) *name

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rw_semaphore {
	struct {
		long counter;
	} owner;
};

struct mutex {
	struct {
		long counter;
	} owner;
};

struct raw_spinlock {};
struct spinlock {};

struct mm_struct {
	unsigned long start_stack;
	struct rw_semaphore mmap_lock;
	struct spinlock page_table_lock;
};

struct sighand_struct {
	struct spinlock siglock;
};

struct files_struct {
	struct spinlock file_lock;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

/* The numbers of a task, one for each namespace that it is in: from the first namespace to its
   own. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	int pid;
	int tgid;
	__u32 self_exec_id;
	char comm[16];
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct mm_struct *mm;
	struct sighand_struct *sighand;
	struct files_struct *files;
	struct spinlock alloc_lock;
	struct raw_spinlock pi_lock;
};

#ifdef __TARGET_ARCH_arm64
struct pt_regs {
	unsigned long regs[31];
	unsigned long pc;
	unsigned long orig_x0;
	int syscallno;
};
#else
struct pt_regs {
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long sp;
};
#endif

#pragma clang attribute pop

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   __u64 flags) = (void *)BPF_FUNC_map_update_elem;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_delete_elem;
static long (*bpf_probe_read_user)(void *to, __u32 size,
				   const void *from) = (void *)BPF_FUNC_probe_read_user;
static long (*bpf_task_pt_regs)(struct task_struct *task) = (void *)BPF_FUNC_task_pt_regs;
static long (*bpf_probe_read_kernel)(void *to, __u32 size,
				     const void *from) = (void *)BPF_FUNC_probe_read_kernel;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*bpf_get_current_comm)(void *to, __u32 size) = (void *)BPF_FUNC_get_current_comm;
static __u64 (*bpf_get_current_cgroup_id)(void) = (void *)BPF_FUNC_get_current_cgroup_id;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)BPF_FUNC_get_current_task_btf;
static long (*bpf_get_stackid)(void *context, void *map, __u64 flags) = (void *)BPF_FUNC_get_stackid;
static long (*bpf_get_task_stack)(struct task_struct *task, void *to, __u32 size,
				  __u64 flags) = (void *)BPF_FUNC_get_task_stack;
static void *(*bpf_task_storage_get)(void *map, struct task_struct *task, void *value,
				     __u64 flags) = (void *)BPF_FUNC_task_storage_get;

/* Only kernels from 6.2 on have these two. */
extern struct task_struct *bpf_task_from_pid(int pid) __attribute__((section(".ksyms"), weak));
extern void bpf_task_release(struct task_struct *task) __attribute__((section(".ksyms"), weak));
