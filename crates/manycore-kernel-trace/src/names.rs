//! The name of a lock of the kernel: from its own known properties, or otherwise from the waiting
//! functions.

use manycore_profile::profile::Frame;

use crate::kallsyms::Kallsyms;
use crate::waits::{Identity, Waits, flag};

/// A name, and whether it is the name of the lock itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// A variable, a field of a structure, or a waiting function.
    pub text: String,
    /// Whether it is one of the first two.
    pub is_lock: bool,
}

/// Functions of the tracer, by how their names begin.
const TRACER: &[&str] =
    &["bpf_", "__bpf_", "perf_", "__perf_", "do_perf_", "__traceiter_", "trace_contention_"];

/// Functions of spinlocks, which other locks are built with.
const SPINNING: &[&str] =
    &["native_queued_", "__pv_queued_", "queued_", "_raw_spin_", "_raw_read_", "_raw_write_"];

/// Functions of other locks. The function that waits is the innermost one on the stack that is in
/// none of these lists.
const MACHINERY: &[&str] = &[
    "__mutex_",
    "mutex_",
    "ww_mutex_",
    "__ww_mutex_",
    "rwsem_",
    "down_",
    "__down_",
    "rt_mutex_",
    "__rt_mutex_",
    "rt_spin_",
    "rt_read_",
    "rt_write_",
    "rwbase_",
    "percpu_rwsem_",
    "percpu_down_",
    "__percpu_down_",
    "up_",
    "downgrade_",
    "raw_spin_rq_lock",
];

/// The lock for which a function waits, where a lock is part of an object on the heap. Functions
/// that others call come first. Kinds: `s` spins, `q` spins on a reader-writer lock, `m` mutex, `r`
/// rwsem.
const WAITERS: &[(&str, char, &str)] = &[
    ("rwsem_", 's', "rwsem->wait_lock"),
    ("up_", 's', "rwsem->wait_lock"),
    ("downgrade_", 's', "rwsem->wait_lock"),
    ("__mutex_", 's', "mutex->wait_lock"),
    ("raw_spin_rq_lock", 's', "rq->__lock"),
    ("rt_mutex_", 's', "rt_mutex->wait_lock"),
    ("unlink_anon_vmas", 'r', "anon_vma->root->rwsem"),
    ("anon_vma_clone", 'r', "anon_vma->root->rwsem"),
    ("anon_vma_fork", 'r', "anon_vma->root->rwsem"),
    ("__anon_vma_prepare", 'r', "anon_vma->root->rwsem"),
    ("folio_lock_anon_vma_read", 'r', "anon_vma->root->rwsem"),
    ("rmap_walk_anon", 'r', "anon_vma->root->rwsem"),
    ("rmap_walk_file", 'r', "mapping->i_mmap_rwsem"),
    ("dup_mmap", 'r', "mapping->i_mmap_rwsem"),
    ("unlink_file_vma", 'r', "mapping->i_mmap_rwsem"),
    ("vma_link", 'r', "mapping->i_mmap_rwsem"),
    ("vma_prepare", 'r', "mapping->i_mmap_rwsem"),
    ("unmap_mapping_", 'r', "mapping->i_mmap_rwsem"),
    ("lock_mm_and_find_vma", 'r', "mm->mmap_lock"),
    ("vm_mmap_pgoff", 'r', "mm->mmap_lock"),
    ("__vm_munmap", 'r', "mm->mmap_lock"),
    ("madvise_", 'r', "mm->mmap_lock"),
    ("do_madvise", 'r', "mm->mmap_lock"),
    ("do_mprotect_pkey", 'r', "mm->mmap_lock"),
    ("__do_sys_brk", 'r', "mm->mmap_lock"),
    ("__do_sys_mremap", 'r', "mm->mmap_lock"),
    ("mmap_read_lock", 'r', "mm->mmap_lock"),
    ("mmap_write_lock", 'r', "mm->mmap_lock"),
    ("access_remote_vm", 'r', "mm->mmap_lock"),
    ("pipe_", 'm', "pipe->mutex"),
    ("tty_write_lock", 'm', "tty->atomic_write_lock"),
    ("file_tty_write", 'm', "tty->atomic_write_lock"),
    ("iterate_tty_write", 'm', "tty->atomic_write_lock"),
    ("anon_pipe_", 'm', "pipe->mutex"),
    ("fdget_pos", 'm', "file->f_pos_lock"),
    ("ksys_", 'm', "file->f_pos_lock"),
    ("__fdget_pos", 'm', "file->f_pos_lock"),
    ("ep_", 'm', "eventpoll->mtx"),
    ("eventpoll_", 'm', "eventpoll->mtx"),
    ("do_epoll_", 'm', "eventpoll->mtx"),
    ("unix_stream_read", 'm', "unix_sock->iolock"),
    ("ext4_buffered_write_iter", 'r', "inode->i_rwsem"),
    ("ext4_file_write_iter", 'r', "inode->i_rwsem"),
    ("ext4_dio_write_iter", 'r', "inode->i_rwsem"),
    ("xfs_ilock", 'r', "inode->i_rwsem"),
    ("btrfs_", 'r', "inode->i_rwsem"),
    ("shmem_file_write_iter", 'r', "inode->i_rwsem"),
    ("generic_file_write_iter", 'r', "inode->i_rwsem"),
    ("ovl_write_iter", 'r', "inode->i_rwsem"),
    ("open_last_lookups", 'r', "inode->i_rwsem"),
    ("path_openat", 'r', "inode->i_rwsem"),
    ("filename_create", 'r', "inode->i_rwsem"),
    ("start_dirop", 'r', "inode->i_rwsem"),
    ("__start_dirop", 'r', "inode->i_rwsem"),
    ("do_unlinkat", 'r', "inode->i_rwsem"),
    ("do_rmdir", 'r', "inode->i_rwsem"),
    ("do_truncate", 'r', "inode->i_rwsem"),
    ("iterate_dir", 'r', "inode->i_rwsem"),
    ("lookup_slow", 'r', "inode->i_rwsem"),
    ("walk_component", 'r', "inode->i_rwsem"),
    ("vfs_rename", 'r', "inode->i_rwsem"),
    ("lock_rename", 'r', "inode->i_rwsem"),
    ("copy_process", 'q', "tasklist_lock"),
    ("release_task", 'q', "tasklist_lock"),
    ("exit_notify", 'q', "tasklist_lock"),
    ("do_exit", 'q', "tasklist_lock"),
    ("do_wait", 'q', "tasklist_lock"),
    ("__do_wait", 'q', "tasklist_lock"),
    ("wait_consider_task", 'q', "tasklist_lock"),
    ("wait_task_zombie", 'q', "tasklist_lock"),
    ("kill_pid_info", 'q', "tasklist_lock"),
    ("copy_process", 's', "sighand->siglock"),
    ("__lock_task_sighand", 's', "sighand->siglock"),
    ("lock_task_sighand", 's', "sighand->siglock"),
    ("rmqueue", 's', "zone->lock"),
    ("__rmqueue", 's', "zone->lock"),
    ("free_pcppages_bulk", 's', "zone->lock"),
    ("free_one_page", 's', "zone->lock"),
    ("get_page_from_freelist", 's', "zone->lock"),
    ("folio_lruvec_lock", 's', "lruvec->lru_lock"),
    ("folio_batch_move_lru", 's', "lruvec->lru_lock"),
    ("folios_put_refs", 's', "lruvec->lru_lock"),
    ("___slab_alloc", 's', "kmem_cache_node->list_lock"),
    ("get_partial_node", 's', "kmem_cache_node->list_lock"),
    ("__put_partials", 's', "kmem_cache_node->list_lock"),
    ("__slab_free", 's', "kmem_cache_node->list_lock"),
    ("free_to_partial_list", 's', "kmem_cache_node->list_lock"),
    ("__pte_offset_map_lock", 's', "page table lock"),
    ("pte_offset_map_lock", 's', "page table lock"),
    ("pte_offset_map_rw_nolock", 's', "page table lock"),
    ("copy_pte_range", 's', "page table lock"),
    ("copy_page_range", 's', "page table lock"),
    ("zap_pte_range", 's', "page table lock"),
    ("unmap_page_range", 's', "page table lock"),
    ("do_wp_page", 's', "page table lock"),
    ("wp_page_copy", 's', "page table lock"),
    ("__pte_alloc", 's', "page table lock"),
    ("pmd_install", 's', "page table lock"),
    ("__pmd_alloc", 's', "page table lock"),
    ("filemap_map_pages", 's', "page table lock"),
    ("finish_fault", 's', "page table lock"),
    ("do_anonymous_page", 's', "page table lock"),
    ("change_pte_range", 's', "page table lock"),
    ("lockref_", 's', "dentry->d_lockref.lock"),
    ("dput", 's', "dentry->d_lockref.lock"),
    ("d_", 's', "dentry->d_lockref.lock"),
    ("__d_", 's', "dentry->d_lockref.lock"),
    ("futex_", 's', "futex_hash_bucket->lock"),
    ("__futex_", 's', "futex_hash_bucket->lock"),
    ("__wake_up", 's', "wait_queue_head->lock"),
    ("add_wait_queue", 's', "wait_queue_head->lock"),
    ("remove_wait_queue", 's', "wait_queue_head->lock"),
    ("prepare_to_wait", 's', "wait_queue_head->lock"),
    ("finish_wait", 's', "wait_queue_head->lock"),
    ("try_to_wake_up", 's', "task->pi_lock"),
    ("__task_rq_lock", 's', "rq->__lock"),
    ("task_rq_lock", 's', "rq->__lock"),
    ("__schedule", 's', "rq->__lock"),
    ("sched_", 's', "rq->__lock"),
    ("ttwu_", 's', "rq->__lock"),
    ("wake_up_new_task", 's', "rq->__lock"),
    ("update_blocked_averages", 's', "rq->__lock"),
    ("load_balance", 's', "rq->__lock"),
    ("newidle_balance", 's', "rq->__lock"),
    ("start_this_handle", 'q', "journal->j_state_lock"),
    ("xas_", 's', "mapping->i_pages.xa_lock"),
    ("__filemap_add_folio", 's', "mapping->i_pages.xa_lock"),
    ("inode_", 's', "inode->i_lock"),
    ("iput", 's', "inode->i_lock"),
    ("percpu_counter_", 's', "percpu_counter->lock"),
    ("__percpu_counter_", 's', "percpu_counter->lock"),
    ("add_timer", 's', "timer_base->lock"),
    ("lock_timer_base", 's', "timer_base->lock"),
    ("lock_hrtimer_base", 's', "hrtimer_cpu_base->lock"),
    ("hrtimer_", 's', "hrtimer_cpu_base->lock"),
];

/// A name for what was waited for.
pub fn of(waits: &Waits, symbols: &Kallsyms) -> Name {
    let lock = |text: &str| Name { text: text.to_owned(), is_lock: true };
    match waits.identity {
        Identity::Part(part) => return lock(part),
        Identity::Variable(address) => {
            if let Some(variable) = symbols.variable(address) {
                return lock(&variable);
            }
        }
        Identity::Unknown => {}
    }
    let frames: Vec<Frame> = waits.stack.iter().map(|call| symbols.frame(*call)).collect();
    let Some(waiter) = first_waiter(&frames) else {
        return Name { text: "unknown".to_owned(), is_lock: false };
    };
    // A spinlock within another lock is known by that one's function.
    let within = functions(&frames).find(|name| !is_tracer(name) && !is_spinning(name));
    let within = within.filter(|_| waits.flags & (flag::SPIN | flag::MUTEX) == flag::SPIN);
    match within.and_then(|name| known(name, waits.flags)).or_else(|| known(waiter, waits.flags)) {
        Some(name) => lock(name),
        None => Name { text: waiter.to_owned(), is_lock: false },
    }
}

/// The function that waits: the innermost that does not belong to a lock.
fn first_waiter(frames: &[Frame]) -> Option<&str> {
    functions(frames).find(|name| !is_machinery(name))
}

fn functions(frames: &[Frame]) -> impl Iterator<Item = &str> {
    frames.iter().filter_map(|frame| frame.function.as_deref())
}

/// Whether a function is the tracer's: then it is not part of the traced program.
pub fn is_tracer(function: &str) -> bool {
    TRACER.iter().any(|start| function.starts_with(start))
}

fn is_machinery(function: &str) -> bool {
    is_tracer(function)
        || is_spinning(function)
        || MACHINERY.iter().any(|start| function.starts_with(start))
}

fn is_spinning(function: &str) -> bool {
    SPINNING.iter().any(|start| function.starts_with(start))
}

fn known(waiter: &str, flags: u32) -> Option<&'static str> {
    let kind = match kind(flags) {
        "spinlock" => 's',
        "rwlock" => 'q',
        "mutex" => 'm',
        "rwsem" => 'r',
        _ => return None,
    };
    let found = WAITERS.iter().find(|(start, of, _)| *of == kind && waiter.starts_with(start));
    found.map(|(.., name)| *name)
}

/// What the kernel calls this kind of lock.
pub fn kind(flags: u32) -> &'static str {
    let is = |bit| flags & bit != 0;
    if is(flag::MUTEX) {
        "mutex"
    } else if is(flag::RT) {
        "rt-mutex"
    } else if is(flag::PERCPU) {
        "percpu-rwsem"
    } else if is(flag::SPIN) && is(flag::READ | flag::WRITE) {
        "rwlock"
    } else if is(flag::SPIN) {
        "spinlock"
    } else if is(flag::READ | flag::WRITE) {
        "rwsem"
    } else {
        // Without any flag: a semaphore, or a lock of a kernel that provides less information.
        "unknown"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_the_kernel() {
        let kinds = [32, 33, 1, 3, 5, 2, 4, 8, 10, 18, 20, 0].map(kind);
        assert_eq!(
            kinds,
            [
                "mutex",
                "mutex",
                "spinlock",
                "rwlock",
                "rwlock",
                "rwsem",
                "rwsem",
                "rt-mutex",
                "rt-mutex",
                "percpu-rwsem",
                "percpu-rwsem",
                "unknown"
            ]
        );
    }

    #[test]
    fn a_function_tells_what_it_waits_for_by_the_kind() {
        assert_eq!(known("copy_process", flag::SPIN), Some("sighand->siglock"));
        assert_eq!(known("copy_process", flag::SPIN | flag::WRITE), Some("tasklist_lock"));
        assert_eq!(known("pipe_write", flag::MUTEX), Some("pipe->mutex"));
        assert_eq!(known("pipe_write", flag::WRITE), None);
    }

    #[test]
    fn who_waits_is_no_part_of_the_lock() {
        let frame = |name: &str| Frame {
            module: "kernel".into(),
            address: 0,
            function: Some(name.into()),
            offset: Some(0),
            file: None,
            line: None,
        };
        let frames =
            ["bpf_trace_run2", "__traceiter_contention_begin", "__mutex_lock", "pipe_write"];
        assert_eq!(first_waiter(&frames.map(frame)), Some("pipe_write"));
        assert_eq!(first_waiter(&[]), None);
    }
}
