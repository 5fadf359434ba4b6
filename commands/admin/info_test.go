package admin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// fieldsOfRedis are the fields of INFO everything of Redis 7.0.15.
const fieldsOfRedis = `
active_defrag_hits active_defrag_key_hits active_defrag_key_misses active_defrag_misses
active_defrag_running allocator_active allocator_allocated allocator_frag_bytes
allocator_frag_ratio allocator_resident allocator_rss_bytes allocator_rss_ratio
aof_current_rewrite_time_sec aof_enabled aof_last_bgrewrite_status aof_last_cow_size
aof_last_rewrite_time_sec aof_last_write_status aof_rewrite_in_progress aof_rewrite_scheduled
aof_rewrites aof_rewrites_consecutive_failures arch_bits async_loading atomicvar_api
blocked_clients client_recent_max_input_buffer client_recent_max_output_buffer
clients_in_timeout_table cluster_connections cluster_enabled config_file configured_hz
connected_clients connected_slaves current_active_defrag_time current_cow_peak current_cow_size
current_cow_size_age current_eviction_exceeded_time current_fork_perc
current_save_keys_processed current_save_keys_total dump_payload_sanitizations evicted_clients
evicted_keys executable expire_cycle_cpu_milliseconds expired_keys expired_stale_perc
expired_time_cap_reached_count gcc_version hz instantaneous_input_kbps
instantaneous_input_repl_kbps instantaneous_ops_per_sec instantaneous_output_kbps
instantaneous_output_repl_kbps io_threaded_reads_processed io_threaded_writes_processed
io_threads_active keyspace_hits keyspace_misses latest_fork_usec lazyfree_pending_objects
lazyfreed_objects loading lru_clock master_failover_state master_repl_offset master_replid
master_replid2 maxclients maxmemory maxmemory_human maxmemory_policy mem_allocator
mem_aof_buffer mem_clients_normal mem_clients_slaves mem_cluster_links mem_fragmentation_bytes
mem_fragmentation_ratio mem_not_counted_for_evict mem_replication_backlog
mem_total_replication_buffers migrate_cached_sockets module_fork_in_progress
module_fork_last_cow_size monotonic_clock multiplexing_api number_of_cached_scripts
number_of_functions number_of_libraries os process_id process_supervised pubsub_channels
pubsub_patterns pubsubshard_channels rdb_bgsave_in_progress rdb_changes_since_last_save
rdb_current_bgsave_time_sec rdb_last_bgsave_status rdb_last_bgsave_time_sec rdb_last_cow_size
rdb_last_load_keys_expired rdb_last_load_keys_loaded rdb_last_save_time rdb_saves redis_build_id
redis_git_dirty redis_git_sha1 redis_mode redis_version rejected_connections repl_backlog_active
repl_backlog_first_byte_offset repl_backlog_histlen repl_backlog_size reply_buffer_expands
reply_buffer_shrinks role rss_overhead_bytes rss_overhead_ratio run_id second_repl_offset
server_time_usec slave_expires_tracked_keys sync_full sync_partial_err sync_partial_ok tcp_port
total_active_defrag_time total_commands_processed total_connections_received total_error_replies
total_eviction_exceeded_time total_forks total_net_input_bytes total_net_output_bytes
total_net_repl_input_bytes total_net_repl_output_bytes total_reads_processed total_system_memory
total_system_memory_human total_writes_processed tracking_clients tracking_total_items
tracking_total_keys tracking_total_prefixes unexpected_error_replies uptime_in_days
uptime_in_seconds used_cpu_sys used_cpu_sys_children used_cpu_sys_main_thread used_cpu_user
used_cpu_user_children used_cpu_user_main_thread used_memory used_memory_dataset
used_memory_dataset_perc used_memory_functions used_memory_human used_memory_lua
used_memory_lua_human used_memory_overhead used_memory_peak used_memory_peak_human
used_memory_peak_perc used_memory_rss used_memory_rss_human used_memory_scripts
used_memory_scripts_eval used_memory_scripts_human used_memory_startup used_memory_vm_eval
used_memory_vm_functions used_memory_vm_total used_memory_vm_total_human
`

// TestInfoHasEveryFieldOfRedis: INFO has all fields, so that exporters and dashboards find
// theirs.
func TestInfoHasEveryFieldOfRedis(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		for _, flags := range [][]string{nil, {"--appendonly", "yes"}} {
			c := w.Start(flags...).Dial()
			seen := map[string]int{}
			for _, line := range strings.Split(c.Do("INFO", "everything"), "\r\n") {
				if name, _, is := strings.Cut(line, ":"); is {
					seen[name]++
				}
			}
			for _, name := range strings.Fields(fieldsOfRedis) {
				require.Equal(t, 1, seen[name], "field %s", name)
			}
		}
	})
}

// TestInfoLatencystats: INFO latencystats has a line for each command that was called, with the
// configured percentiles.
func TestInfoLatencystats(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		c.Do("SET", "k", "v")
		require.Regexp(t, `^p50=\d+\.\d{3},p99=\d+\.\d{3},p99\.9=\d+\.\d{3}$`, c.Info("latency_percentiles_usec_set"))
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "latency-tracking-info-percentiles", "0.5 100"))
		require.Regexp(t, `^p0\.5=\d+\.\d{3},p100=\d+\.\d{3}$`, c.Info("latency_percentiles_usec_set"))
		require.NotContains(t, c.Do("INFO"), "# Latencystats")
		require.NotContains(t, c.Do("INFO", "everything"), "usec_get:")
	})
}
