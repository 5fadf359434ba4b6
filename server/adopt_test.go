package server_test

import (
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/persistence"
)

// baseFS is a disk on which no base is begun until the gate opens.
type baseFS struct {
	persistence.OS
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
	return b.OS.Create(name)
}

// TestPromotedNodeTakesWritesAtOnce: right after a full sync, before its base is written. Only with
// appendfsync always the replies wait for that. All that was answered is there after a restart.
func TestPromotedNodeTakesWritesAtOnce(t *testing.T) {
	for _, policy := range []string{"no", "everysec", "always"} {
		t.Run(policy, func(t *testing.T) {
			kind, dir := transports()[0], t.TempDir()
			primary := startStandby(t, kind)
			require.Equal(t, "+OK\r\n", primary.dial().do("SET", "of primary", "v"))
			disk := &baseFS{gate: make(chan struct{})}
			flags := []string{"--transport", kind, "--io-threads", "2", "--dir", dir, "--appendonly", "yes", "--appendfsync", policy}
			c, err := config.Load(flags, nil)
			require.NoError(t, err)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			f := launchAt(t, c, l, disk, nil, func() {})
			t.Cleanup(disk.open)
			eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
			f.follows(primary)
			eventually(t, "the base is begun", disk.waiting.Load)
			cl, other := f.dial(), f.dial()
			require.Equal(t, "+OK\r\n", cl.do("REPLICAOF", "NO", "ONE"))
			eventually(t, "it leads", func() bool { return f.replication()["role"] == "master" && other.info("loading") == "0" })
			if policy == "always" {
				cl.command("SET", "own", "v")
				eventually(t, "it has run", func() bool { return other.do("GET", "own") == "$1\r\nv\r\n" })
				require.Equal(t, "0", other.info("aof_faults"))
				disk.open()
				require.Equal(t, "+OK\r\n", cl.reply())
			} else {
				require.Equal(t, "+OK\r\n", cl.do("SET", "own", "v"))
				disk.open()
			}
			f.end()
			again := startStandby(t, kind, flags[4:]...)
			require.Equal(t, "$1\r\nv\r\n", again.dial().do("GET", "own"))
			require.Equal(t, "$1\r\nv\r\n", again.dial().do("GET", "of primary"))
		})
	}
}
