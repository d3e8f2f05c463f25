/*
 * For programs that include "mvrlu.h": the package manycore-rlu of pkg-config puts this directory
 * on their path. They may use the macros, or MV-RLU's functions, which are these.
 */
#ifndef MANYCORE_MVRLU_H
#define MANYCORE_MVRLU_H

#include <manycore/rlu.h>

typedef rlu_thread_data_t mvrlu_thread_struct_t;

#define mvrlu_init RLU_INIT
#define mvrlu_finish RLU_FINISH
#define mvrlu_print_stats RLU_PRINT_STATS
#define mvrlu_thread_alloc RLU_THREAD_ALLOC
#define mvrlu_thread_init RLU_THREAD_INIT
#define mvrlu_thread_finish RLU_THREAD_FINISH
#define mvrlu_thread_free RLU_THREAD_FREE
#define mvrlu_reader_lock RLU_READER_LOCK
#define mvrlu_reader_unlock RLU_READER_UNLOCK
#define mvrlu_abort RLU_ABORT
#define mvrlu_try_lock RLU_TRY_LOCK
#define mvrlu_try_lock_const RLU_TRY_LOCK_CONST
#define mvrlu_alloc RLU_ALLOC
#define mvrlu_free RLU_FREE
#define mvrlu_deref RLU_DEREF
#define mvrlu_assign_ptr RLU_ASSIGN_PTR
#define mvrlu_cmp_ptrs RLU_IS_SAME_PTRS
#define mvrlu_flush_log manycore_rlu_flush

#endif
