package manager_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
)

// gatedFS is a disk whose files cannot be read after it was shut, until the gate opens. Files whose
// names begin with free always can.
type gatedFS struct {
	persistence.FS
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

// Open implements [persistence.FS].
func (g *gatedFS) Open(name string) (persistence.File, error) {
	f, err := g.FS.Open(name)
	return gatedFile{f, g, g.free != "" && strings.HasPrefix(filepath.Base(name), g.free)}, err
}

// ReadAt implements [persistence.File].
func (f gatedFile) ReadAt(b []byte, off int64) (int, error) {
	if f.fs.shut.Load() && !f.free {
		f.fs.waiting.Add(1)
		<-f.fs.gate
	}
	return f.File.ReadAt(b, off)
}

// filled returns a disk with 100 keys in a base and 50 more in a log.
func filled(t *testing.T, w *inproc.World, options ...string) *faultfs.FS {
	t.Helper()
	f := w.Start(append([]string{"--appendonly", "yes"}, options...)...)
	c := f.Dial()
	for i := range 150 {
		require.Equal(t, inproc.Five(0, 16, 15, -1, 20), c.Do("CL.THROTTLE", fmt.Sprint("key", i), "15", "30", "600"))
		if i == 99 {
			require.Equal(t, inproc.OK, c.Do("SAVE"))
		}
	}
	require.NoError(t, f.Stop())
	return f.Disk
}

// gated starts a server that cannot read the state that it has to load, except files whose names
// begin with free. It has validated the directory.
func gated(t *testing.T, w *inproc.World, disk *faultfs.FS, free string, options ...string) (*inproc.Node, *gatedFS) {
	t.Helper()
	g := &gatedFS{FS: disk, free: free, gate: make(chan struct{})}
	n := w.Node(func(o *server.Options) { o.FS = g }, append([]string{"--appendonly", "yes"}, options...)...)
	n.Disk = disk
	n.Made = func() { g.shut.Store(true) }
	require.NoError(t, n.Run())
	t.Cleanup(g.open)
	return n, g
}

const loadingError = "-LOADING Redis is loading the dataset in memory\r\n"

// TestLoading: a server that is loading answers, with an error for commands that need the state,
// and reports its progress.
func TestLoading(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, disk := gated(t, w, filled(t, w), "")
		c := f.Dial()
		require.Equal(t, inproc.Bulk("hello"), c.Do("ECHO", "hello"))
		for _, refused := range [][]string{
			{"CL.THROTTLE", "key1", "15", "30", "600"},
			{"SW.ALLOW", "other", "15", "60"},
			{"EXISTS", "key1"},
			{"PING"}, // as in Redis
			{"DBSIZE"},
			{"FLUSHALL"},
			{"SAVE"},
			{"BGREWRITEAOF"},
		} {
			require.Equal(t, loadingError, c.Do(refused...), "%v", refused)
		}
		require.Equal(t, inproc.OK, c.Do("MULTI"))
		require.Equal(t, loadingError, c.Do("EXISTS", "key1"))
		require.Equal(t, inproc.ExecAbort, c.Do("EXEC"))
		require.Equal(t, "1", c.Info("loading"))
		require.Equal(t, "0", c.Info("async_loading"))
		require.NotEqual(t, "0", c.Info("loading_total_bytes"), "it looks at the files")
		require.Equal(t, "0", c.Info("loading_loaded_bytes"))
		require.Equal(t, "0.00", c.Info("loading_loaded_perc"))
		require.Equal(t, "0", c.Info("loading_eta_seconds"))
		require.NotEqual(t, "0", c.Info("loading_start_time"))
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "appendfsync", "always"))

		disk.open()
		w.Settle()
		require.Equal(t, "0", c.Info("loading"))
		require.Equal(t, ":150\r\n", c.Do("DBSIZE"))
		require.Equal(t, inproc.Five(0, 16, 14, -1, 40), c.Do("CL.THROTTLE", "key1", "15", "30", "600"))
		require.Equal(t, "50", c.Info("load_records_replayed"))
		require.Equal(t, "100", c.Info("rdb_last_load_keys_loaded"))
	})
}

// loadingLine matches the lines that a loading server logs every few seconds.
var loadingLine = regexp.MustCompile(`level=INFO msg=loading percent=(\d+) keys=(\d+) records=(\d+) eta=(\S+)`)

// TestLoadingShowsItsProgress loads a log whose disk answers after ten minutes. The log file and
// INFO show how much has been read, and how long the rest takes at the average speed so far.
func TestLoadingShowsItsProgress(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		files := filled(t, w)
		began := time.Now()
		f, disk := gated(t, w, files, "base.")
		c := f.Dial()
		require.Positive(t, disk.waiting.Load(), "the base is loaded and the log is not")
		const spent = 10 * time.Minute
		w.Advance(spent)
		number := func(field string) float64 {
			n, err := strconv.ParseFloat(c.Info(field), 64)
			require.NoError(t, err)
			return n
		}
		total, read := number("loading_total_bytes"), number("loading_loaded_bytes")

		sizes := 0
		for _, name := range files.Names() {
			base, size := filepath.Base(name), len(files.Content(name))
			if strings.HasPrefix(base, "base.") || strings.HasPrefix(base, "incr.") {
				sizes += size
			}
			if strings.HasPrefix(base, "base.") {
				require.InDelta(t, size, read, 128, "all of the base but what frames it")
			}
		}
		require.Equal(t, sizes, int(total))
		left := spent.Seconds() * (total - read) / read
		require.InDelta(t, left, number("loading_eta_seconds"), 1)
		require.Equal(t, strconv.FormatInt(began.Unix(), 10), c.Info("loading_start_time"))
		require.Equal(t, fmt.Sprintf("%.2f", 100*read/total), c.Info("loading_loaded_perc"))

		lines := loadingLine.FindAllStringSubmatch(f.Log.String(), -1)
		require.Greater(t, len(lines), 10, "some of them are left out")
		line := lines[len(lines)-1]
		require.Equal(t, []string{fmt.Sprint(int(100 * read / total)), "100", "0"}, line[1:4])
		logged, err := time.ParseDuration(line[4])
		require.NoError(t, err)
		require.InDelta(t, left, logged.Seconds(), 15*left/spent.Seconds()+1, "it may be from some seconds before")

		disk.open()
		w.Settle()
		require.Equal(t, "0", c.Info("loading"))
		require.Contains(t, f.Log.String(), "level=INFO msg=\"state loaded\" keys_of_snapshot=100 records_of_log=50 took=10m0")
		require.Equal(t, ":150\r\n", c.Do("DBSIZE"))
	})
}

// TestStopWhileLoading: SHUTDOWN, with or without a snapshot, and a signal end a loading server,
// and do not change its files.
func TestStopWhileLoading(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		files := filled(t, w, "--save", "900 1")
		for _, how := range []string{"SHUTDOWN\r\n", "SHUTDOWN SAVE\r\n", ""} {
			f, disk := gated(t, w, files, "", "--save", "900 1")
			c := f.Dial()
			if c.Send(how); how == "" {
				f.Server.Stop()
			}
			c.ExpectEnd()
			disk.open()
			require.NoError(t, f.Stop())
			require.NotContains(t, f.Log.String(), "snapshot written")
		}
		require.Equal(t, ":150\r\n", w.StartOn(files, "--appendonly", "yes").Dial().Do("DBSIZE"))
	})
}

// TestDamageFoundWhileLoading: a server that finds a damaged base only while it loads ends with an
// error that says where the damage is.
func TestDamageFoundWhileLoading(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		files := filled(t, w)
		base := ""
		for _, name := range files.Names() {
			if strings.HasPrefix(filepath.Base(name), "base.") {
				require.Empty(t, base)
				base = name
			}
		}
		content := files.Content(base)
		content[len(content)/2] ^= 1
		files.SetContent(base, content)

		f, disk := gated(t, w, files, "")
		require.Equal(t, loadingError, f.Dial().Do("DBSIZE"))
		disk.open()
		err := f.Ended()
		var corrupt *persistence.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.True(t, strings.HasPrefix(corrupt.Error(), base+": offset 68, record 1: the checksum of the block is wrong"), corrupt.Error())
		require.Equal(t, content, files.Content(base))
	})
}
