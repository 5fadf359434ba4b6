//go:build real

package compat_test

import (
	"bufio"
	"bytes"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/programs"
	"github.com/cellserver/cellserver/limit"
)

// exporterUser are the rules that redis_exporter's documentation gives its user.
const exporterUser = "-@all +@connection +memory -readonly +strlen +config|get +xinfo +pfcount -quit +zcard +type +xlen -readwrite " +
	"-command +client -wait +scard +llen +hlen +get +eval +slowlog +cluster|info -hello -echo +info +latency +scan -reset -auth -asking"

// exporterLoad are commands that move what the exporter shows. Some fail on purpose.
const exporterLoad = `CONFIG SET slowlog-log-slower-than 0
CONFIG SET latency-monitor-threshold 1
CONFIG RESETSTAT
SET a 1
GET a
GET none
SET short v PX 1
SETEX b 100 x
LPUSH l 1 2
HSET h a b
ZADD z 1 a
SADD s a b
INCR l
PUBLISH c x
NOSUCH
DEL b
CLIENT TRACKING ON
GET a
SUBSCRIBE news`

// exporterScript is slow enough for SLOWLOG and LATENCY, and is kept.
const exporterScript = "local n = 0 for i = 1, 3000000 do n = n + i end return n"

// neverMoves are the metrics that Redis moves under the load and that stay 0 here, each with
// the reason.
var neverMoves = map[string]string{
	"allocator_frag_bytes":                           "Go's runtime does not tell gaps between objects from the heap",
	"memory_used_functions_bytes":                    "there is no FUNCTION",
	"memory_used_vm_functions_bytes":                 "there is no FUNCTION",
	"reply_buffer_shrinks_total":                     "replies are written into a buffer of the loop",
	"reply_buffer_expands_total":                     "replies are written into a buffer of the loop",
	"latest_fork_usec":                               "nothing forks",
	"latest_fork_seconds":                            "nothing forks",
	"forks_total":                                    "nothing forks",
	"aof_last_cow_size_bytes":                        "nothing forks",
	"aof_delayed_fsync":                              "the disk was not as slow again",
	"expired_stale_percentage":                       "the share of expired keys is not estimated: all keys are looked at in turn",
	"mem_aof_buffer_bytes":                           "what waits for the log has no memory once it is written",
	"connected_client_query_buffer_free_space_bytes": "a client has no buffer of input while it waits",
	"aof_base_size_bytes":                            "a log has no base before it is rewritten",
	"client_recent_max_input_buffer_bytes":           "commands are read into a buffer of the loop; a client keeps only an unfinished one",
	"config_io_threads":                              "0 means as many as there are processors",
	"mem_not_counted_for_eviction_bytes":             "what is not written to the log counts as well",
}

// TestRedisExporterMissesNothing runs redis_exporter beside Redis and beside us after the same
// load, as the user that its documentation describes: all metrics of Redis are there, and what
// moved there has moved here. CELL_REDIS_EXPORTER names another version than that of Debian.
func TestRedisExporterMissesNothing(t *testing.T) {
	program := exporterProgram(t)
	if version := redisVersion(); !strings.HasPrefix(version, "7.") {
		programs.Missing(t, "no redis-server 7 on the path, but version %q", version)
	}
	redis := startRedis(t)
	own := inproc.Start(t, limit.Instant(time.Now().UnixNano()), "--appendonly", "yes", "--dir", t.TempDir())
	ours := func() (net.Conn, error) { return net.Dial("tcp", own.Addr().String()) }

	control := newControl(t, redis)
	control.must(t, "CONFIG", "SET", "appendonly", "yes")
	require.Eventually(t, func() bool {
		return strings.Contains(control.must(t, "INFO", "persistence").Text, "aof_rewrite_in_progress:0")
	}, time.Minute, time.Millisecond)
	theirMetrics := scrape(t, program, redis, func() {})
	ourMetrics := scrape(t, program, ours, func() { own.Clock.Advance(time.Second) })

	var lacking, still []string
	for name, sum := range theirMetrics {
		mine, found := ourMetrics[name]
		short := strings.TrimPrefix(name, "redis_")
		switch {
		case !found:
			lacking = append(lacking, name)
		case sum != 0 && mine == 0 && neverMoves[short] == "" && !isDuration(short):
			still = append(still, name)
		}
	}
	slices.Sort(lacking)
	slices.Sort(still)
	require.Empty(t, lacking, "metrics that Redis has")
	require.Empty(t, still, "metrics that move in Redis")
	t.Logf("%d metrics of Redis, %d of ours", len(theirMetrics), len(ourMetrics))
}

// isDuration tells what may be less than its unit.
func isDuration(name string) bool {
	return strings.Contains(name, "_duration") || strings.Contains(name, "seconds") || strings.HasPrefix(name, "aof_pending")
}

// exporterProgram is the exporter.
func exporterProgram(t *testing.T) string {
	for _, name := range []string{os.Getenv("CELL_REDIS_EXPORTER"), "prometheus-redis-exporter", "redis_exporter"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	programs.Missing(t, "no redis_exporter")
	return ""
}

// scrape plays the load against a server and returns the sum of the values of each metric that
// the exporter then shows of it. later lets time pass where only a test does.
func scrape(t *testing.T, program string, dial func() (net.Conn, error), later func()) map[string]float64 {
	t.Helper()
	c := newControl(t, dial)
	c.must(t, append(strings.Fields("ACL SETUSER exporter on >pass allkeys"), strings.Fields(exporterUser)...)...)
	for _, line := range strings.Split(exporterLoad, "\n") {
		_, _ = c.do(strings.Fields(line)...) // some fail on purpose
	}
	c = newControl(t, dial)
	c.must(t, "EVAL", exporterScript, "0")
	later()
	require.Eventually(t, func() bool { return c.must(t, "GET", "short").Null }, time.Minute, time.Millisecond)

	addr := net.JoinHostPort("127.0.0.1", freeport.Choose())
	var log bytes.Buffer
	command := exec.Command(program, "-redis.addr", "redis://"+c.RemoteAddr().String(), "-web.listen-address", addr,
		"-redis-only-metrics", "-include-system-metrics", "-export-client-list", "-include-config-metrics", "-check-keys", "*")
	command.Env = append(os.Environ(), "REDIS_USER=exporter", "REDIS_PASSWORD=pass")
	command.Stderr = &log
	require.NoError(t, command.Start())
	sums := map[string]float64{}
	// What is looked at once a second moves a second later.
	require.Eventually(t, func() bool {
		maps.Copy(sums, metricsAt("http://"+addr+"/metrics"))
		return sums["redis_up"] == 1 && sums["redis_instantaneous_input_kbps"]+sums["redis_uptime_in_seconds"] > 0
	}, time.Minute, 50*time.Millisecond)
	require.NoError(t, command.Process.Kill())
	_ = command.Wait() // it was killed
	for _, line := range strings.Split(log.String(), "\n") {
		require.NotContains(t, line, "level=error")
		require.NotContains(t, line, "NOPERM")
	}
	return sums
}

// metricsAt reads metrics, and adds up those of a name; none if there is no answer yet.
func metricsAt(url string) map[string]float64 {
	sums := map[string]float64{}
	r, err := http.Get(url) //nolint:gosec // of this machine
	if err != nil {
		return nil
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		space := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || space < 0 {
			continue
		}
		name, _, _ := strings.Cut(line[:space], "{")
		if n, err := strconv.ParseFloat(line[space+1:], 64); err == nil {
			sums[name] += n
		}
	}
	return sums
}
