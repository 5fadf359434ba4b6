package persistence_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
)

// Whatever an increment consists of, it is loaded or refused, and what was loaded
// is what is loaded the next time.
func FuzzIncrement(f *testing.F) {
	fsys, _, clock := closed(f)
	name := logFile(fsys)
	whole := fsys.Content(name)
	f.Add(whole[persistence.HeaderSize:])
	f.Add([]byte{})
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, body []byte) {
		broken := with(fsys, name, append(bytes.Clone(whole[:persistence.HeaderSize]), body...))
		s, err := open(t, broken, clock, persistence.SyncNo)
		if err != nil {
			return
		}
		want := s.state()
		s.close()
		again, err := open(t, broken, clock, persistence.SyncNo)
		require.NoError(t, err)
		require.Equal(t, want, again.state())
	})
}

// Whatever a snapshot consists of, it is loaded or refused.
func FuzzSnapshot(f *testing.F) {
	fsys, _, clock := closed(f)
	name := ""
	for _, n := range fsys.Names() {
		if bytes.HasPrefix(fsys.Content(n), []byte("CELLSNAP")) {
			name = n
		}
	}
	whole := fsys.Content(name)
	f.Add(whole[persistence.HeaderSize:])
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := open(t, with(fsys, name, append(bytes.Clone(whole[:persistence.HeaderSize]), body...)), clock, persistence.SyncNo)
		if err == nil {
			s.close()
		}
	})
}

// Whatever a manifest consists of, it is read or refused.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(sealed("version 1", "file base.1.snap seq 1 type b id 1", "file incr.2.log seq 2 type i id 2")))
	f.Add([]byte("version 1\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := persistence.ParseManifest("m", content); err != nil {
			require.ErrorContains(t, err, "m:")
		}
	})
}

// check-aof never fails in another way than by saying so, and after --fix nothing
// is left to be fixed.
func FuzzCheck(f *testing.F) {
	fsys, _, _ := closed(f)
	name := logFile(fsys)
	whole := fsys.Content(name)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, content []byte) {
		broken := with(fsys, name, content)
		if persistence.Check(broken, "data", true, io.Discard) == nil {
			require.NoError(t, persistence.Check(broken, "data", false, io.Discard))
			_, err := open(t, broken, clocktest.New(begin), persistence.SyncNo)
			require.NoError(t, err)
		}
	})
}

// The blocks of a snapshot and the effects of a record are decoded from any bytes.
func FuzzEffects(f *testing.F) {
	f.Add([]byte{65, 0, 64, 1, 1, 'k'})
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(begin), Shards: 1})
	f.Fuzz(func(t *testing.T, record []byte) {
		for len(record) > 0 {
			e, rest, err := keyspace.NextEffect(record)
			if err != nil {
				return
			}
			_ = ks.Apply(e) // what it refuses it says
			require.Less(t, len(rest), len(record))
			record = rest
		}
	})
}
