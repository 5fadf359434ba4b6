package persistence_test

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/persistence"
)

// ring is a tap that copies its bytes, as the backlog of a primary does.
type ring struct {
	b  []byte
	at int
}

// Wrote implements persistence.Tap.
func (r *ring) Wrote(piece []byte, _ uint64) {
	for len(piece) > 0 {
		n := copy(r.b[r.at:], piece)
		r.at, piece = (r.at+n)%len(r.b), piece[n:]
	}
}

// Gap implements persistence.Tap.
func (r *ring) Gap() {}

// BenchmarkTap measures what a tap adds to rounds of 32 records of 40 bytes, with a file and
// without one.
func BenchmarkTap(b *testing.B) {
	source := clocktest.New(begin)
	o := options(nil, source)
	o.FS, o.Path = persistence.OS{}, b.TempDir()
	dir, err := persistence.Open(o)
	require.NoError(b, err)
	file, err := dir.Start(persistence.LogOptions{Policy: persistence.SyncNo})
	require.NoError(b, err)
	volatile := persistence.NewVolatile(persistence.LogOptions{
		Stopwatch: func() time.Duration { return 0 },
		Clock:     func() clock.Record { return clock.Record{Derived: source.Now()} },
		Log:       slog.New(slog.DiscardHandler),
	})
	for _, c := range []struct {
		name string
		log  *persistence.Log
		tap  persistence.Tap
	}{
		{"file", file, nil},
		{"file and tap", file, &ring{b: make([]byte, 16<<20)}},
		{"nothing", volatile, nil},
		{"tap", volatile, &ring{b: make([]byte, 16<<20)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.log.SetTap(c.tap)
			record := make([]byte, 40)
			b.ReportAllocs()
			for b.Loop() {
				pos := uint64(0)
				for range 32 {
					pos = c.log.Append(record, nil, begin)
				}
				for c.log.Await(pos, nil) == persistence.Pending {
					runtime.Gosched() // the ticker is writing
				}
			}
		})
	}
	require.NoError(b, volatile.Close())
	require.NoError(b, dir.Close())
}
