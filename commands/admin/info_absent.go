package admin

import "strings"

// absentInfo has fields of Redis by section that have no counterpart here, or that are not counted.
// Exporters and dashboards expect them, so INFO shows them with constant values, such as 0.
var absentInfo = map[string]string{
	"Server": `redis_build_id:0 monotonic_clock:runtime atomicvar_api:go gcc_version:0.0.0 process_supervised:no
		lru_clock:0 io_threads_active:0`,
	"Clients": `clients_in_timeout_table:0`,
	"Memory": `used_memory_vm_functions:0 used_memory_functions:0 number_of_libraries:0
		mem_not_counted_for_evict:0 mem_replication_backlog:0 mem_total_replication_buffers:0 mem_clients_slaves:0
		mem_cluster_links:0 lazyfree_pending_objects:0 lazyfreed_objects:0`,
	"Persistence": `current_cow_peak:0 current_cow_size:0 current_cow_size_age:0 current_fork_perc:0.00
		current_save_keys_processed:0 current_save_keys_total:0 rdb_last_bgsave_time_sec:-1
		rdb_current_bgsave_time_sec:-1 rdb_saves:0 rdb_last_cow_size:0 rdb_last_load_keys_expired:0
		rdb_last_load_keys_loaded:0 aof_rewrite_scheduled:0 aof_last_rewrite_time_sec:-1
		aof_current_rewrite_time_sec:-1 aof_last_bgrewrite_status:ok aof_rewrites:0
		aof_rewrites_consecutive_failures:0 aof_last_cow_size:0 module_fork_in_progress:0
		module_fork_last_cow_size:0`,
	"Stats": `instantaneous_input_repl_kbps:0.00 instantaneous_output_repl_kbps:0.00 expired_stale_perc:0.00
		expired_time_cap_reached_count:0 total_eviction_exceeded_time:0 current_eviction_exceeded_time:0
		total_forks:0 migrate_cached_sockets:0 slave_expires_tracked_keys:0 active_defrag_hits:0
		active_defrag_misses:0 active_defrag_key_hits:0 active_defrag_key_misses:0 total_active_defrag_time:0
		current_active_defrag_time:0 unexpected_error_replies:0 dump_payload_sanitizations:0
		io_threaded_reads_processed:0 io_threaded_writes_processed:0 reply_buffer_shrinks:0 reply_buffer_expands:0`,
	"Replication": `master_failover_state:no-failover master_replid:0000000000000000000000000000000000000000
		master_replid2:0000000000000000000000000000000000000000 master_repl_offset:0 second_repl_offset:-1
		repl_backlog_active:0 repl_backlog_size:0 repl_backlog_first_byte_offset:0 repl_backlog_histlen:0`,
}

// absent returns the lines for the fields of absentInfo that INFO has not written: text is the text
// of the section so far.
func absent(section, text string) string {
	var b strings.Builder
	for _, f := range strings.Fields(absentInfo[section]) {
		if name, _, _ := strings.Cut(f, ":"); !strings.Contains(text, "\n"+name+":") {
			b.WriteString(f + "\r\n")
		}
	}
	return b.String()
}
