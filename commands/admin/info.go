package admin

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/stats"
)

func infoCommands() []*command.Command {
	return []*command.Command{{
		Name: "info", Arity: -1, Flags: command.FlagLoading | command.FlagStale | command.FlagAllShards, Categories: command.CatDangerous,
		Group:   "server",
		Summary: "Returns information and statistics about the server.", Syntax: "[section [section ...]]",
		Since: "1.0.0", Complexity: "O(1)", Reply: "text, a field on every line", Run: info,
		WordWork: 10, // each argument is compared with the names of all sections
	}}
}

// infoSection is a section of INFO. Without arguments, INFO shows the sections that do not have
// extra set.
type infoSection struct {
	name  string
	extra bool // shown only if the section is named, or with the arguments all or everything
	write func(*infoWriter)
}

func infoSections() []infoSection {
	return []infoSection{
		{"Server", false, infoServer},
		{"Clients", false, infoClients},
		{"Memory", false, infoMemory},
		{"Persistence", false, infoPersistence},
		{"Stats", false, infoStats},
		{"Replication", false, infoReplication},
		{"CPU", false, infoCPU},
		{"Modules", false, infoModules},
		{"Commandstats", true, infoCommandstats},
		{"Errorstats", false, infoErrorstats},
		{"Latencystats", true, infoLatencystats},
		{"Cluster", false, func(w *infoWriter) { w.int("cluster_enabled", 0) }},
		{"Keyspace", false, infoKeyspace},
		{"Store", false, infoStore},
		{"Ratelimit", false, infoRatelimit},
	}
}

// infoWriter collects the text of INFO and has the figures that it shows.
type infoWriter struct {
	strings.Builder
	c        *command.Call
	e        *command.Server
	p        env.Process
	store    env.StoreStats
	stats    command.Statistics
	moved    stats.Traffic
	measured stats.Measures
	// values has the figures of the current section by field. names has the fields that are not
	// written yet, in the order of the registry.
	values map[string]int64
	names  []string
}

func (w *infoWriter) look(v *figure.View, section string) {
	w.values, w.names = make(map[string]int64), w.names[:0]
	v.Fields(section, func(name string, value int64) {
		w.values[name], w.names = value, append(w.names, name)
	})
}

// figures writes the fields called names, in that order, and removes them from w.names. A field is
// 0 if it has no figure, for example because the server does not have the group of that figure.
func (w *infoWriter) figures(names ...string) {
	for _, name := range names {
		w.int(name, w.values[name])
		w.names = slices.DeleteFunc(w.names, func(n string) bool { return n == name })
	}
}

// rest writes the figures of the section that are not written yet.
func (w *infoWriter) rest() { w.figures(slices.Clone(w.names)...) }

func (w *infoWriter) str(name, value string) { fmt.Fprintf(w, "%s:%s\r\n", name, value) }
func (w *infoWriter) int(name string, value int64) {
	fmt.Fprintf(w, "%s:%d\r\n", name, value)
}

// kept returns the value of a field of INFO persistence; "0" if the server has no persistence or
// there is no such field.
func (w *infoWriter) kept(field string) string {
	if p := w.e.Options.Persistence; p != nil {
		for _, f := range p.Info() {
			if f.Name == field {
				return f.Value
			}
		}
	}
	return "0"
}

func info(c *command.Call) {
	v := c.Server.Figures.View()
	figure.Put(v, c.Store.Stats()) // the store of this worker is read, because in a transaction it holds the locks
	w := &infoWriter{
		c: c, e: c.Server, p: c.Server.Process(),
		store: figure.Of[env.StoreStats](v), stats: figure.Of[command.Statistics](v), moved: figure.Of[stats.Traffic](v),
		measured: figure.Of[stats.Measures](v),
	}
	for _, s := range infoSections() {
		if !infoWants(c.Args[1:], s) || s.name == "Store" && c.Server.Options.RemoteInfo == nil {
			continue
		}
		if w.Len() > 0 {
			w.WriteString("\r\n")
		}
		from := w.Len()
		fmt.Fprintf(w, "# %s\r\n", s.name)
		w.look(v, s.name)
		s.write(w)
		w.rest()
		w.WriteString(absent(s.name, w.String()[from:]))
	}
	c.W.Verbatim("txt", w.String())
}

func infoWants(args [][]byte, s infoSection) bool {
	if len(args) == 0 {
		return !s.extra
	}
	name := strings.ToUpper(s.name)
	for _, a := range args {
		switch {
		case arg.IsWord(a, "ALL"), arg.IsWord(a, "EVERYTHING"), arg.IsWord(a, name):
			return true
		case arg.IsWord(a, "DEFAULT") && !s.extra:
			return true
		}
	}
	return false
}

func infoServer(w *infoWriter) {
	up := int64(w.p.Uptime() / time.Second)
	w.str("redis_version", command.RedisVersion)
	commit, modified := w.p.Revision()
	w.str("redis_git_sha1", commit)
	w.int("redis_git_dirty", elements.OneIf(modified))
	w.str("redis_mode", "standalone")
	w.str("os", runtime.GOOS+" "+runtime.GOARCH)
	w.int("arch_bits", 64)
	w.str("multiplexing_api", w.p.Transport())
	w.int("process_id", int64(w.p.PID()))
	w.str("run_id", w.p.RunID())
	w.int("tcp_port", int64(w.p.TCPPort()))
	w.int("server_time_usec", int64(w.c.Store.Civil(w.c.Store.Now()))/int64(time.Microsecond))
	w.int("uptime_in_seconds", up)
	w.int("uptime_in_days", up/86400)
	w.int("hz", 10)
	w.int("configured_hz", 10)
	w.str("executable", w.p.Executable())
	w.str("config_file", w.p.ConfigFile())
	w.str("server_name", "cellserver")
	w.str("cellserver_version", w.p.Version())
	w.str("tzdata", calendar.Release())
}

func infoClients(w *infoWriter) {
	w.figures("connected_clients")
	w.int("cluster_connections", 0)
	w.int("maxclients", int64(w.e.Limits().MaxClients))
	w.figures("client_recent_max_input_buffer", "client_recent_max_output_buffer", "blocked_clients", "tracking_clients", "pubsub_clients")
}

func infoMemory(w *infoWriter) {
	w.sized("used_memory")
	w.sized("used_memory_rss")
	w.figures("used_memory_dataset", "used_memory_startup")
	infoMemoryShares(w)
	scriptBytes := w.values["used_memory_scripts"]
	w.int("used_memory_lua", scriptBytes)
	w.str("used_memory_lua_human", human(scriptBytes))
	w.int("used_memory_vm_eval", scriptBytes)
	w.int("used_memory_vm_total", scriptBytes)
	w.str("used_memory_vm_total_human", human(scriptBytes))
	w.int("used_memory_scripts_eval", scriptBytes)
	w.sized("used_memory_scripts")
	w.figures("number_of_cached_scripts")
	w.int("number_of_functions", 0)
	w.figures("mem_clients_normal")
	w.str("mem_aof_buffer", w.kept("aof_buffer_length"))
	w.int("maxmemory", w.store.Memory.Max)
	w.str("maxmemory_human", human(w.store.Memory.Max))
	w.str("maxmemory_policy", "noeviction")
	w.str("mem_allocator", "go")
	w.int("active_defrag_running", 0)
}

// infoMemoryShares writes the fields that are ratios or differences of memory figures. The heap of
// Go takes the place of the allocator of Redis.
func infoMemoryShares(w *infoWriter) {
	used, dataset, rss, heap := w.values["used_memory"], w.values["used_memory_dataset"], w.values["used_memory_rss"], w.values["allocator_allocated"]
	peak := memoryPeak(w.c, max(used, w.measured.PeakMemory))
	ratio := func(name string, of, by int64) { w.str(name, fmt.Sprintf("%.2f", float64(of)/float64(max(by, 1)))) }
	percent := func(name string, of, by int64) {
		w.str(name, fmt.Sprintf("%.2f%%", 100*float64(of)/float64(max(by, 1))))
	}
	w.int("used_memory_peak", peak)
	w.str("used_memory_peak_human", human(peak))
	percent("used_memory_peak_perc", used, peak)
	w.int("used_memory_overhead", used-dataset)
	percent("used_memory_dataset_perc", dataset, used)
	w.figures("allocator_allocated")
	w.int("allocator_active", heap)
	w.int("allocator_resident", rss)
	ratio("allocator_frag_ratio", heap, heap)
	w.int("allocator_frag_bytes", 0)
	ratio("allocator_rss_ratio", rss, heap)
	w.int("allocator_rss_bytes", rss-heap)
	ratio("rss_overhead_ratio", rss, rss)
	w.int("rss_overhead_bytes", 0)
	ratio("mem_fragmentation_ratio", rss, used)
	w.int("mem_fragmentation_bytes", rss-used)
	w.sized("total_system_memory")
}

// sized writes the value of the field called name in bytes, and then a field with the same value in
// a readable unit.
func (w *infoWriter) sized(name string) {
	w.figures(name)
	w.str(name+"_human", human(w.values[name]))
}

// highest is the state of the group for the server: the highest memory use in bytes.
type highest struct{ memory atomic.Int64 }

// memoryPeak returns the highest memory use, in bytes, with which it was called since the start.
// used is the present memory use.
func memoryPeak(c *command.Call, used int64) int64 {
	h := command.ServerState[highest](c)
	for {
		peak := h.memory.Load()
		if used <= peak {
			return peak
		}
		if h.memory.CompareAndSwap(peak, used) {
			return used
		}
	}
}

// human formats n bytes as Redis does in fields such as used_memory_human: 1.00K, for example, and
// 512B for less than 1024 bytes. The greatest unit is E.
func human(n int64) string {
	f, units := float64(n), "BKMGTPE"
	i := 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%dB", n)
	}
	return fmt.Sprintf("%.2f%c", f, units[i])
}

func infoPersistence(w *infoWriter) {
	if p := w.e.Options.Persistence; p != nil {
		for _, f := range p.Info() {
			w.str(f.Name, f.Value)
		}
		return
	}
	w.int("loading", 0)
	w.int("async_loading", 0)
	w.int("rdb_changes_since_last_save", 0)
	w.int("rdb_bgsave_in_progress", 0)
	w.int("rdb_last_save_time", 0)
	w.str("rdb_last_bgsave_status", "ok")
	w.int("aof_enabled", 0)
	w.int("aof_rewrite_in_progress", 0)
	w.str("aof_last_write_status", "ok")
}

func infoStats(w *infoWriter) {
	w.figures("total_connections_received", "total_commands_processed", "instantaneous_ops_per_sec", "total_net_input_bytes",
		"total_net_output_bytes")
	w.str("instantaneous_input_kbps", fmt.Sprintf("%.2f", w.moved.InPerSecond/1024))
	w.str("instantaneous_output_kbps", fmt.Sprintf("%.2f", w.moved.OutPerSecond/1024))
	w.figures("total_reads_processed", "total_writes_processed", "expire_cycle_cpu_milliseconds", "rejected_connections", "sync_full",
		"sync_partial_ok", "sync_partial_err", "total_net_repl_input_bytes", "total_net_repl_output_bytes", "expired_keys")
	w.int("evicted_keys", 0)
	w.figures("keyspace_hits", "keyspace_misses", "pubsub_channels", "pubsub_patterns", "pubsubshard_channels", "tracking_total_keys",
		"tracking_total_items", "tracking_total_prefixes", "evicted_clients", "evicted_scripts", "client_output_buffer_limit_disconnections")
	w.int("latest_fork_usec", 0)
	w.figures("total_error_replies", "acl_access_denied_auth", "acl_access_denied_cmd", "acl_access_denied_key",
		"acl_access_denied_channel", "internal_errors")
}

func infoReplication(w *infoWriter) {
	for _, f := range w.e.Node().Info() {
		w.str(f.Name, f.Value)
	}
}

func infoCPU(w *infoWriter) {
	sys, user := w.p.CPU()
	fmt.Fprintf(w, "used_cpu_sys:%.6f\r\n", sys.Seconds())
	fmt.Fprintf(w, "used_cpu_user:%.6f\r\n", user.Seconds())
	w.str("used_cpu_sys_children", "0.000000")
	w.str("used_cpu_user_children", "0.000000")
	fmt.Fprintf(w, "used_cpu_sys_main_thread:%.6f\r\n", sys.Seconds()) // zero, because the times of single threads are not measured
	fmt.Fprintf(w, "used_cpu_user_main_thread:%.6f\r\n", user.Seconds())
}

// infoModules writes a line for redis-cell with the seven fields that exporters parse.
func infoModules(w *infoWriter) {
	w.str("module", "name=redis-cell,ver=1,api=1,filters=0,usedby=[],using=[],options=[]")
}

func infoCommandstats(w *infoWriter) {
	for id, t := range w.stats.Commands {
		if t.Calls == 0 && t.Rejected == 0 {
			continue
		}
		usec := (t.Nanos + 999) / 1000 // rounded up, so that a command that has run shows at least 1
		per := 0.0
		if t.Calls > 0 {
			per = max(float64(t.Nanos)/1000/float64(t.Calls), 0.01)
		}
		fmt.Fprintf(w, "cmdstat_%s:calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d\r\n",
			w.e.Commands.Entries[id].Name, t.Calls, usec, per, t.Rejected, t.Failed)
	}
}

// infoLatencystats writes percentiles of the durations of calls, in microseconds, for each command
// that has timed calls. The option latency-tracking-info-percentiles says which percentiles.
func infoLatencystats(w *infoWriter) {
	shown := w.e.Limits().Observing.Percentiles
	for id, t := range w.stats.Commands {
		if t.Calls == 0 || len(shown) == 0 {
			continue
		}
		took, _ := w.e.Host.Measures.Durations(id)
		if took.Calls == 0 {
			continue
		}
		fmt.Fprintf(w, "latency_percentiles_usec_%s:", w.e.Commands.Entries[id].Name)
		for i, p := range shown {
			if i > 0 {
				w.WriteByte(',')
			}
			fmt.Fprintf(w, "p%s=%.3f", strconv.FormatFloat(p, 'f', -1, 64), float64(took.Quantile(p/100))/1000)
		}
		w.WriteString("\r\n")
	}
}

func infoErrorstats(w *infoWriter) {
	w.stats.Errors.Each(func(word string, count int64) { fmt.Fprintf(w, "errorstat_%s:count=%d\r\n", word, count) })
}

func infoKeyspace(w *infoWriter) {
	for db, s := range w.store.Databases {
		if s.Keys > 0 {
			fmt.Fprintf(w, "db%d:keys=%d,expires=%d,avg_ttl=%d\r\n", db, s.Keys, s.Expires, s.AvgTTL.Milliseconds())
		}
	}
}

// infoStore writes the state of the Remote, which keeps the limits if --store is set.
func infoStore(w *infoWriter) {
	for _, f := range w.e.Options.RemoteInfo() {
		w.str(f.Name, f.Value)
	}
}

// infoRatelimit writes, for each command of a limiter that writes, the numbers of calls that were
// allowed, were denied, had errors, and were refused before they ran.
func infoRatelimit(w *infoWriter) {
	for id, t := range w.stats.Commands {
		cmd := w.e.Commands.Entries[id]
		if limiter(cmd) {
			fmt.Fprintf(w, "%s:allowed=%d,denied=%d,errors=%d\r\n", cmd.Name, t.Calls-t.Denied-t.Failed, t.Denied, t.Failed+t.Rejected)
		}
	}
	for _, f := range w.e.Options.RuleFiles {
		w.figures(f.Figures...)
		w.str(f.Field, f.Fault())
	}
}

// limiter reports whether c is a command of a limiter that writes. Commands of limiters that only
// read have no calls that are allowed or denied.
func limiter(c *command.Command) bool {
	return c.Flags&command.FlagModule != 0 || c.Categories&command.CatRateLimit != 0 && c.Flags&command.FlagWrite != 0
}
