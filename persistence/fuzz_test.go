package persistence_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/persistence"
)

// An increment of any bytes is loaded or refused, and loading again gives the same state.
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

// A snapshot of any bytes is loaded or refused.
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

// A manifest of any bytes is read or refused.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(sealed("version 1", "file base.1.snap seq 1 type b id 1", "file incr.2.log seq 2 type i id 2")))
	f.Add([]byte("version 1\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := persistence.ParseManifest("m", content); err != nil {
			require.ErrorContains(t, err, "m:")
		}
	})
}

// check-aof only fails with an error that it reports, and after --fix there is nothing left to fix.
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

// Effects are decoded from any bytes, and applying them a second time does not change the state.
func FuzzEffects(f *testing.F) {
	f.Add([]byte{65, 0, 64, 1, 1, 'k'})
	fsys, _, _ := closed(f)
	for _, record := range effectsOf(fsys.Content(logFile(fsys))) {
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		ks := keyspace.New(keyspace.Options{Clock: clocktest.New(begin), Shards: 1, Databases: 3})
		defer ks.Close()
		applied := apply(t, ks, record)
		once := stateOf(ks)
		require.Equal(t, applied, apply(t, ks, record))
		require.Equal(t, once, stateOf(ks))
	})
}

// apply applies effects up to the first invalid one, and returns their number.
func apply(t *testing.T, ks *keyspace.Keyspace, record []byte) (n int) {
	for len(record) > 0 {
		e, rest, err := effect.Next(record)
		if err != nil || ks.Apply(e) != nil {
			return n
		}
		require.Less(t, len(rest), len(record))
		record = rest
		n++
	}
	return n
}

// effectsOf returns the records of effects in a log that is whole.
func effectsOf(log []byte) (records [][]byte) {
	for rest := log[persistence.HeaderSize:]; len(rest) > 8; {
		end := 8 + int(binary.LittleEndian.Uint32(rest))
		if rest[8] == 1 {
			records = append(records, bytes.Clone(rest[9:end]))
		}
		rest = rest[end:]
	}
	return records
}
