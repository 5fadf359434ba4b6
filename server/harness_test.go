package server_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/local"
	"github.com/cellserver/cellserver/session"
	long "github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// noAuth is the reply to a client that has not authenticated.
const noAuth = "-NOAUTH Authentication required.\r\n"

// writeConfig writes a configuration file and returns its path.
func writeConfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cellserver.conf")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// journal is where an engine of [startKept] writes its records.
type journal interface {
	keyspace.Journal
	env.Persistence
}

// startKept returns an engine without a server, whose effects a journal records. Everything ends
// with the test.
func startKept(t *testing.T, j journal) (*session.Engine, *keyspace.Keyspace, *clocktest.Clock) {
	t.Helper()
	clock := clocktest.New(inproc.Epoch)
	ks := keyspace.New(keyspace.Options{Clock: clock})
	ks.SetJournal(j)
	began := time.Now()
	e := session.NewEngine(env.Options{
		Ledger: ks.Ledger(), NewStore: func() env.Store { return local.NewStore(ks) }, Persistence: j,
		Stopwatch: func() time.Duration { return time.Since(began) }, Now: clock.Now,
		Settings: config.Default(), Log: slog.New(slog.DiscardHandler),
	}, commands.NewTable())
	t.Cleanup(func() {
		e.Close()
		ks.Close()
	})
	return e, ks, clock
}

// records is a journal that only counts records.
type records struct{ n atomic.Uint64 }

// Append implements [keyspace.Journal].
func (r *records) Append(_ []byte, refs []long.Ref, _ limit.Instant) uint64 {
	long.ReleaseAll(refs)
	return r.n.Add(1)
}

func (r *records) Refuses() bool { return false }

// Await implements [env.Persistence].
func (r *records) Await(uint64, transport.Peer) transport.Outcome { return transport.Kept }

func (r *records) Position() uint64      { return r.n.Load() }
func (r *records) Fault() string         { return "" }
func (r *records) Awaited() bool         { return false }
func (r *records) Save() error           { return nil }
func (r *records) Start() bool           { return true }
func (r *records) LastSave() int64       { return 0 }
func (r *records) Info() []env.InfoField { return nil }
