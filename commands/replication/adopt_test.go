package replication_test

import (
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
)

// baseFS is a disk that blocks the creation of a base file until the gate opens.
type baseFS struct {
	persistence.FS
	waiting atomic.Bool
	gate    chan struct{}
	once    sync.Once
}

func (b *baseFS) open() { b.once.Do(func() { close(b.gate) }) }

// Create implements persistence.FS.
func (b *baseFS) Create(name string) (persistence.File, error) {
	if strings.HasPrefix(filepath.Base(name), "base.") {
		b.waiting.Store(true)
		<-b.gate
	}
	return b.FS.Create(name)
}

// TestPromotedNodeTakesWritesAtOnce promotes right after a full resynchronization, before the
// base file is written. Only with appendfsync always the replies wait for that. All acknowledged
// writes are there after a restart.
func TestPromotedNodeTakesWritesAtOnce(t *testing.T) {
	for _, policy := range []string{"no", "everysec", "always"} {
		t.Run(policy, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				primary := w.Start()
				require.Equal(t, inproc.OK, primary.Dial().Do("SET", "of primary", "v"))
				disk := &baseFS{FS: faultfs.New(), gate: make(chan struct{})}
				f := w.StartWith(func(o *server.Options) { o.FS = disk }, "--appendonly", "yes", "--appendfsync", policy)
				t.Cleanup(disk.open)
				f.Follow(primary)
				w.Settle()
				require.True(t, disk.waiting.Load(), "the base is begun")
				c, other := f.Dial(), f.Dial()
				f.Promote()
				require.Equal(t, "0", other.Info("loading"))
				if policy == "always" {
					c.Command("SET", "own", "v")
					w.Settle()
					require.Equal(t, inproc.Bulk("v"), other.Do("GET", "own"), "it has run")
					require.Equal(t, "0", other.Info("aof_faults"))
					c.Silent()
					disk.open()
					require.Equal(t, inproc.OK, c.Reply())
				} else {
					require.Equal(t, inproc.OK, c.Do("SET", "own", "v"))
					disk.open()
				}
				require.NoError(t, f.Stop())
				again := w.StartOn(disk.FS.(*faultfs.FS), "--appendonly", "yes").Dial()
				require.Equal(t, inproc.Bulk("v"), again.Do("GET", "own"))
				require.Equal(t, inproc.Bulk("v"), again.Do("GET", "of primary"))
			})
		})
	}
}
