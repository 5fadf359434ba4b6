package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/persistence"
)

// gatedFS is a disk whose files cannot be read, once it has been shut, until the
// gate opens; files whose names begin with free always can.
type gatedFS struct {
	persistence.OS
	free    string
	shut    atomic.Bool
	waiting atomic.Int64
	gate    chan struct{}
	once    sync.Once
}

func (g *gatedFS) open() { g.once.Do(func() { close(g.gate) }) }

type gatedFile struct {
	persistence.File
	fs   *gatedFS
	free bool
}

// Open implements persistence.FS.
func (g *gatedFS) Open(name string) (persistence.File, error) {
	f, err := g.OS.Open(name)
	return gatedFile{f, g, g.free != "" && strings.HasPrefix(filepath.Base(name), g.free)}, err
}

// ReadAt implements persistence.File.
func (f gatedFile) ReadAt(b []byte, off int64) (int, error) {
	if f.fs.shut.Load() && !f.free {
		f.fs.waiting.Add(1)
		<-f.fs.gate
	}
	return f.File.ReadAt(b, off)
}

// filled makes a directory that holds 100 keys in a base and 50 more in a log.
func filledDir(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	f := start(t, "goroutine", append([]string{"--dir", dir, "--appendonly", "yes"}, flags...)...)
	c := f.dial()
	for i := range 150 {
		require.Equal(t, five(0, 16, 15, -1, 20), c.do("CL.THROTTLE", fmt.Sprint("key", i), "15", "30", "600"))
		if i == 99 {
			require.Equal(t, "+OK\r\n", c.do("SAVE"))
		}
	}
	f.end()
	return dir
}

// gated starts a server that cannot read what it is to load.
func gated(t *testing.T, kind, dir string, flags ...string) (*fixture, *gatedFS) {
	t.Helper()
	disk := &gatedFS{gate: make(chan struct{})}
	return behindGate(t, disk, kind, dir, flags...), disk
}

// behindGate starts a server whose disk is shut before it loads.
func behindGate(t *testing.T, disk *gatedFS, kind, dir string, flags ...string) *fixture {
	t.Helper()
	// What is there has been judged by then, and is yet to be loaded.
	f := startOnDisk(t, kind, disk, func() { disk.shut.Store(true) }, append([]string{"--dir", dir}, flags...)...)
	t.Cleanup(disk.open)
	return f
}

const loadingError = "-LOADING Redis is loading the dataset in memory\r\n"

// TestLoading: a server that loads answers, commands that need the state with an
// error, and says how far it is.
func TestLoading(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		dir := filledDir(t)
		f, disk := gated(t, kind, dir, "--appendonly", "yes")
		c := f.dial()
		require.Equal(t, bulk("hello"), c.do("ECHO", "hello"))
		for _, refused := range [][]string{
			{"CL.THROTTLE", "key1", "15", "30", "600"},
			{"SW.ALLOW", "other", "15", "60"},
			{"EXISTS", "key1"},
			{"PING"}, // as Redis
			{"DBSIZE"},
			{"FLUSHALL"},
			{"SAVE"},
			{"BGREWRITEAOF"},
		} {
			require.Equal(t, loadingError, c.do(refused...), "%v", refused)
		}
		require.Equal(t, "+OK\r\n", c.do("MULTI"))
		require.Equal(t, loadingError, c.do("EXISTS", "key1"))
		require.Equal(t, "-EXECABORT Transaction discarded because of previous errors.\r\n", c.do("EXEC"))
		require.Equal(t, "1", c.info("loading"))
		require.Equal(t, "0", c.info("async_loading"))
		eventually(t, "it looks at the files", func() bool { return c.info("loading_total_bytes") != "0" })
		require.Equal(t, "0", c.info("loading_loaded_bytes"))
		require.Equal(t, "0.00", c.info("loading_loaded_perc"))
		require.Equal(t, "0", c.info("loading_eta_seconds"))
		require.NotEqual(t, "0", c.info("loading_start_time"))
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "appendfsync", "always"))

		disk.open()
		eventually(t, "loaded", func() bool { return c.info("loading") == "0" })
		require.Equal(t, ":150\r\n", c.do("DBSIZE"))
		require.Equal(t, five(0, 16, 14, -1, 40), c.do("CL.THROTTLE", "key1", "15", "30", "600"))
		require.Equal(t, "50", c.info("load_records_replayed"))
		require.Equal(t, "100", c.info("rdb_last_load_keys_loaded"))
	})
}

// loadingLine is what a server that loads logs every few seconds.
var loadingLine = regexp.MustCompile(`level=INFO msg=loading percent=(\d+) keys=(\d+) records=(\d+) eta=(\S+)\n`)

// TestLoadingShowsItsProgress loads a large log. The log file and INFO show how much of
// it has been read, and how long the rest takes at the pace so far.
func TestLoadingShowsItsProgress(t *testing.T) {
	dir := filledDir(t)
	disk := &gatedFS{free: "base.", gate: make(chan struct{})}
	f := behindGate(t, disk, "goroutine", dir, "--appendonly", "yes")
	c := f.dial()
	eventually(t, "the base is loaded and the log is not", func() bool { return disk.waiting.Load() > 0 })
	const spent = time.Hour
	began := time.Now()
	f.LoadFor(spent)
	f.LogLoading()
	eta, err := strconv.ParseFloat(c.info("loading_eta_seconds"), 64)
	require.NoError(t, err)
	total, err := strconv.ParseFloat(c.info("loading_total_bytes"), 64)
	require.NoError(t, err)
	read, err := strconv.ParseFloat(c.info("loading_loaded_bytes"), 64)
	require.NoError(t, err)
	since, err := strconv.ParseInt(c.info("loading_start_time"), 10, 64)
	require.NoError(t, err)
	lines := loadingLine.FindAllStringSubmatch(f.log.String(), -1) // before the clock is read: the server adds to them
	least, most := spent.Seconds()*(total-read)/read, (spent+time.Since(began)).Seconds()*(total-read)/read

	sizes := int64(0)
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "[bi]*.*"))
	require.NoError(t, err)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		sizes += info.Size()
		if base := filepath.Base(file); strings.HasPrefix(base, "base.") {
			require.InDelta(t, info.Size(), read, 128, "all of the base but what frames it")
		}
	}
	require.Equal(t, sizes, int64(total))
	require.GreaterOrEqual(t, eta, least-1) // it is cut to seconds
	require.LessOrEqual(t, eta, most)
	require.GreaterOrEqual(t, since, began.Add(-spent).Unix()-1)
	require.LessOrEqual(t, since, time.Now().Add(-spent).Unix()+1)
	require.Equal(t, fmt.Sprintf("%.2f", 100*read/total), c.info("loading_loaded_perc"))
	require.NotEmpty(t, lines, f.log.String())
	line := lines[len(lines)-1]
	require.Equal(t, []string{fmt.Sprint(int(100 * read / total)), "100", "0"}, line[1:4])
	left, err := time.ParseDuration(line[4])
	require.NoError(t, err)
	require.GreaterOrEqual(t, left.Seconds(), least-1)
	require.LessOrEqual(t, left.Seconds(), most+1)

	disk.open()
	eventually(t, "loaded", func() bool { return c.info("loading") == "0" })
	require.Contains(t, f.log.String(), "level=INFO msg=\"state loaded\" keys_of_snapshot=100 records_of_log=50 took=")
	require.Equal(t, ":150\r\n", c.do("DBSIZE"))
}

// TestStopWhileLoading: SHUTDOWN, with a snapshot or without, and a signal end a
// server that loads, and leave its files as they are.
func TestStopWhileLoading(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		dir := filledDir(t, "--save", "900 1")
		for _, how := range []string{"SHUTDOWN\r\n", "SHUTDOWN SAVE\r\n", ""} {
			f, disk := gated(t, kind, dir, "--appendonly", "yes", "--save", "900 1")
			c := f.dial()
			if c.send(how); how == "" {
				f.Stop()
			}
			c.expectEnd()
			disk.open()
			f.end()
			require.NotContains(t, f.log.String(), "snapshot written")
		}
		f := start(t, kind, "--dir", dir, "--appendonly", "yes")
		require.Equal(t, ":150\r\n", f.dial().do("DBSIZE"))
	})
}

// TestDamageFoundWhileLoading: a server that finds out only while it loads that a
// base is damaged ends with an error that says where.
func TestDamageFoundWhileLoading(t *testing.T) {
	dir := filledDir(t)
	bases, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "base.*.snap"))
	require.NoError(t, err)
	require.Len(t, bases, 1)
	content, err := os.ReadFile(bases[0])
	require.NoError(t, err)
	content[len(content)/2] ^= 1
	require.NoError(t, os.WriteFile(bases[0], content, 0o600))

	f, disk := gated(t, "goroutine", dir, "--appendonly", "yes")
	require.Equal(t, loadingError, f.dial().do("DBSIZE"))
	disk.open()
	f.ended.Do(func() {
		select {
		case err = <-f.done:
		case <-time.After(patience):
			t.Fatal("the server does not end")
		}
	})
	var corrupt *persistence.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.True(t, strings.HasPrefix(corrupt.Error(), bases[0]+": offset 68, record 1: the checksum of the block is wrong"), corrupt.Error())
	after, err := os.ReadFile(bases[0])
	require.NoError(t, err)
	require.Equal(t, content, after)
}
