/* Sizes, alignments and offsets, as docs/src/capi.md has them. They do not change within a version
   of the shared library's name. */
#include <manycore/ldu.h>
#include <manycore/lock.h>
#include <manycore/map.h>
#include <manycore/rcu.h>
#include <manycore/rlu.h>
#include <manycore/timestone.h>

#define IS(type, size) _Static_assert(sizeof(type) == (size) && _Alignof(type) == 8, #type)
#define AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member)

IS(rlu_thread_data_t, 32);
AT(rlu_thread_data_t, is_no_quiescence, 8);
IS(manycore_rlu_config_t, 56);
AT(manycore_rlu_config_t, clock, 8);
AT(manycore_rlu_config_t, patience_ms, 12);
AT(manycore_rlu_config_t, segment_bytes, 16);
AT(manycore_rlu_config_t, segments, 24);
AT(manycore_rlu_config_t, segments_max, 32);
AT(manycore_rlu_config_t, report, 40);
AT(manycore_rlu_config_t, context, 48);
IS(manycore_rlu_stats_t, 72);
IS(manycore_stall_t, 24);
AT(manycore_stall_t, blocked_ns, 8);
AT(manycore_stall_t, bytes, 16);
IS(manycore_mutex_t, 24);
IS(manycore_rwlock_t, 32);
IS(manycore_rcu_head_t, 16);
IS(manycore_rcu_config_t, 48);
AT(manycore_rcu_config_t, limit_bytes, 8);
AT(manycore_rcu_config_t, patience_ms, 16);
AT(manycore_rcu_config_t, fences, 24);
AT(manycore_rcu_config_t, report, 32);
AT(manycore_rcu_config_t, context, 40);
IS(manycore_ldu_node_t, 24);
IS(manycore_ldu_target_t, 16);
IS(manycore_ldu_drained_t, 16);
IS(ts_config_t, 56);
AT(ts_config_t, window_ns, 32);
AT(ts_config_t, operations, 40);
AT(ts_config_t, operation_count, 48);
IS(ts_operation_t, 24);
AT(ts_operation_t, version, 8);
AT(ts_operation_t, run, 16);
IS(ts_contents_t, 48);
AT(ts_contents_t, is_closed, 40);
IS(manycore_map_config_t, 24);
AT(manycore_map_config_t, records, 8);
AT(manycore_map_config_t, log_bytes, 16);
IS(manycore_map_bytes_t, 16);
AT(manycore_map_bytes_t, size, 8);
_Static_assert(sizeof(manycore_status_t) == 4 && sizeof(int) == 4, "statuses are 32 bits");

int main(void)
{
    return 0;
}
