/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_LDU_RMAP_H
#define _LINUX_LDU_RMAP_H
/*
 * Reverse maps whose updates are logged: see mm/ldu_file.c and mm/ldu_anon.c.
 */

#include <linux/jump_label.h>
#include <linux/mm_types.h>

struct address_space;
struct anon_vma;

#ifdef CONFIG_LDU_RMAP

DECLARE_STATIC_KEY_FALSE(ldu_file_key);
DECLARE_STATIC_KEY_FALSE(ldu_anon_key);

/* Whether updates of i_mmap are logged. */
static inline bool ldu_file_enabled(void)
{
	return static_branch_unlikely(&ldu_file_key);
}

/* Whether updates of the trees of anon_vmas are logged. */
static inline bool ldu_anon_enabled(void)
{
	return static_branch_unlikely(&ldu_anon_key);
}

void ldu_file_init(struct address_space *mapping);
void ldu_file_retire(struct address_space *mapping);
bool ldu_file_is_pending(struct address_space *mapping);

void ldu_file_write_locked(struct address_space *mapping);
void ldu_file_read_locked(struct address_space *mapping);
bool ldu_file_read_trylocked(struct address_space *mapping);
void ldu_file_begin_update(struct address_space *mapping);
void ldu_file_end_update(struct address_space *mapping);
bool ldu_file_is_queued(struct vm_area_struct *vma);
void ldu_file_cancel(struct vm_area_struct *vma, struct address_space *mapping);

void ldu_file_link(struct vm_area_struct *vma, struct vm_area_struct *after,
		   struct address_space *mapping);
void ldu_file_unlink(struct vm_area_struct **vmas, int count,
		     struct address_space *mapping);

void ldu_anon_init(struct anon_vma *anon_vma);
void ldu_anon_retire(struct anon_vma *root);

void ldu_anon_write_locked(struct anon_vma *root);
void ldu_anon_read_locked(struct anon_vma *root);
bool ldu_anon_read_trylocked(struct anon_vma *root);
void ldu_anon_begin_update(struct anon_vma *root);
void ldu_anon_end_update(struct anon_vma *root);

void ldu_anon_link(struct vm_area_struct *vma, struct vm_area_struct *after,
		   struct anon_vma *root);
void ldu_anon_unlink(struct vm_area_struct *vma, struct anon_vma *root);

static inline void ldu_vma_init(struct vm_area_struct *vma)
{
	atomic_set(&vma->ldu_refs, 1);
	ldu_node_init(&vma->ldu_file);
	ldu_node_init(&vma->ldu_anon);
}

/* Whether others may still look at the VMA, under RCU: see ldu_push(). */
static inline bool ldu_vma_was_logged(struct vm_area_struct *vma)
{
	return vma->ldu_file.ordinal || vma->ldu_anon.ordinal;
}

void ldu_vma_check_freed(struct vm_area_struct *vma);

/* Drops the owner's reference; whether no log has one. */
static inline bool ldu_vma_put(struct vm_area_struct *vma)
{
	if (!atomic_dec_and_test(&vma->ldu_refs))
		return false;
	if (IS_ENABLED(CONFIG_LDU_RMAP_VERIFY))
		ldu_vma_check_freed(vma);
	return true;
}

#else

static inline bool ldu_file_enabled(void)
{
	return false;
}

static inline void ldu_file_init(struct address_space *mapping)
{
}

static inline void ldu_file_retire(struct address_space *mapping)
{
}

static inline bool ldu_file_is_pending(struct address_space *mapping)
{
	return false;
}

static inline void ldu_file_write_locked(struct address_space *mapping)
{
}

static inline void ldu_file_read_locked(struct address_space *mapping)
{
}

static inline bool ldu_file_read_trylocked(struct address_space *mapping)
{
	return true;
}

static inline void ldu_file_begin_update(struct address_space *mapping)
{
}

static inline void ldu_file_end_update(struct address_space *mapping)
{
}

static inline bool ldu_file_is_queued(struct vm_area_struct *vma)
{
	return false;
}

static inline void ldu_file_cancel(struct vm_area_struct *vma,
				   struct address_space *mapping)
{
}

static inline void ldu_file_link(struct vm_area_struct *vma,
				 struct vm_area_struct *after,
				 struct address_space *mapping)
{
}

static inline void ldu_file_unlink(struct vm_area_struct **vmas, int count,
				   struct address_space *mapping)
{
}

static inline bool ldu_anon_enabled(void)
{
	return false;
}

static inline void ldu_anon_init(struct anon_vma *anon_vma)
{
}

static inline void ldu_anon_retire(struct anon_vma *root)
{
}

static inline void ldu_anon_write_locked(struct anon_vma *root)
{
}

static inline void ldu_anon_read_locked(struct anon_vma *root)
{
}

static inline bool ldu_anon_read_trylocked(struct anon_vma *root)
{
	return true;
}

static inline void ldu_anon_begin_update(struct anon_vma *root)
{
}

static inline void ldu_anon_end_update(struct anon_vma *root)
{
}

static inline void ldu_anon_link(struct vm_area_struct *vma,
				 struct vm_area_struct *after,
				 struct anon_vma *root)
{
}

static inline void ldu_anon_unlink(struct vm_area_struct *vma,
				   struct anon_vma *root)
{
}

static inline void ldu_vma_init(struct vm_area_struct *vma)
{
}

static inline bool ldu_vma_was_logged(struct vm_area_struct *vma)
{
	return false;
}

static inline bool ldu_vma_put(struct vm_area_struct *vma)
{
	return true;
}

#endif /* CONFIG_LDU_RMAP */

/*
 * A VMA was unlinked under the lock, without a log: nobody expects it in the
 * tree any more.
 */
#ifdef CONFIG_LDU_RMAP_VERIFY
void ldu_file_forget(struct vm_area_struct *vma, struct address_space *mapping);
void ldu_anon_forget(struct vm_area_struct *vma, struct anon_vma *root);
#else
static inline void ldu_file_forget(struct vm_area_struct *vma,
				   struct address_space *mapping)
{
}

static inline void ldu_anon_forget(struct vm_area_struct *vma,
				   struct anon_vma *root)
{
}
#endif
#endif /* _LINUX_LDU_RMAP_H */
