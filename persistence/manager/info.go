package manager

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/persistence"
)

// Info implements [env.Persistence].
func (m *Persistence) Info() []env.InfoField {
	var st persistence.LogStats
	var base, increments int64
	log, found := m.fileLog(), m.loaded.Load()
	if log != nil {
		st = log.Stats()
		base, increments = m.dir.Sizes()
	}
	if found == nil {
		found = &loaded{}
	}
	saving := m.saving.Load()
	took, running := m.snapshots.seconds(saving, m.o.Stopwatch())
	fields := append(m.loadingInfo(), []env.InfoField{
		field("rdb_changes_since_last_save", m.changes.Load()-m.savedTo.Load()),
		{Name: "rdb_bgsave_in_progress", Value: digit(saving)},
		field("rdb_last_save_time", m.lastSave.Load()),
		{Name: "rdb_last_bgsave_status", Value: status(!m.saveFailed.Load())},
		field("rdb_last_bgsave_time_sec", took),
		field("rdb_current_bgsave_time_sec", running),
		field("rdb_saves", m.snapshots.written.Load()),
		field("rdb_last_load_keys_loaded", found.keys),
		{Name: "aof_enabled", Value: digit(log != nil)},
		{Name: "aof_rewrite_in_progress", Value: digit(saving && log != nil)},
		{Name: "aof_rewrite_scheduled", Value: "0"},
		field("aof_rewrites_consecutive_failures", m.failures.Load()),
		{Name: "aof_last_bgrewrite_status", Value: status(!m.saveFailed.Load())},
		{Name: "aof_last_write_status", Value: status(!m.Refuses())},
	}...)
	fields = append(fields,
		field("load_duration_ms", found.took.Milliseconds()),
		field("load_records_replayed", found.records),
		field("load_truncated_bytes", found.torn))
	if log == nil {
		return fields
	}
	return append(fields,
		field("aof_rewrites", m.snapshots.written.Load()),
		field("aof_last_rewrite_time_sec", took),
		field("aof_current_rewrite_time_sec", running),
		field("aof_current_size", base+increments),
		field("aof_pending_rewrite", 0),
		env.InfoField{Name: "aof_pending_bio_fsync", Value: digit(st.StalledMillis > 0)},
		field("aof_base_size", base),
		field("aof_buffer_length", int64(st.Buffered)),
		field("aof_delayed_fsync", st.SlowSyncs),
		field("aof_fsyncs", st.Syncs),
		field("aof_writes", st.Writes),
		field("aof_last_fsync_usec", st.LastSyncMicros),
		field("aof_fsync_stalled_ms", st.StalledMillis),
		field("aof_faults", st.Faults))
}

// snapshots has the figures of INFO about the snapshots that this process has written.
type snapshots struct {
	written atomic.Int64 // number of snapshots that were written completely
	began   atomic.Int64 // reading of the stopwatch when the last snapshot began
	took    atomic.Int64 // the time in nanoseconds that the last snapshot took, even if it failed; 0 before the first
}

// seconds returns how many whole seconds the last snapshot took, and for how many the present
// snapshot has been running at now, a reading of the stopwatch. As in Redis, took is -1 if there
// was no snapshot, and running is -1 if saving is false.
func (n *snapshots) seconds(saving bool, now time.Duration) (took, running int64) {
	took, running = -1, -1
	if n.written.Load() > 0 || n.took.Load() > 0 {
		took = int64(time.Duration(n.took.Load()) / time.Second)
	}
	if saving {
		running = int64(max(0, now-time.Duration(n.began.Load())) / time.Second)
	}
	return took, running
}

// loadingInfo returns the fields of INFO about loading. They say that the server is loading until
// it no longer refuses commands because of that, which is a little later than when Loaded returns
// true.
func (m *Persistence) loadingInfo() []env.InfoField {
	if !m.o.Loading() {
		return []env.InfoField{{Name: "loading", Value: "0"}, {Name: "async_loading", Value: "0"}}
	}
	total, read, eta := m.far()
	percent := 100 * float64(read) / float64(max(total, 1))
	return []env.InfoField{
		{Name: "loading", Value: "1"},
		{Name: "async_loading", Value: "0"},
		field("loading_start_time", m.o.Began.Add(time.Duration(m.began.Load())).Unix()),
		field("loading_total_bytes", total),
		field("loading_loaded_bytes", read),
		{Name: "loading_loaded_perc", Value: strconv.FormatFloat(percent, 'f', 2, 64)},
		field("loading_eta_seconds", int64(eta/time.Second)),
	}
}

func field(name string, n int64) env.InfoField {
	return env.InfoField{Name: name, Value: strconv.FormatInt(n, 10)}
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func status(ok bool) string {
	if ok {
		return "ok"
	}
	return "err"
}
