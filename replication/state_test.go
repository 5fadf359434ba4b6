package replication_test

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

// state returns all keys of a node, as text.
func (m *member) state() map[string]string { return m.stateAt(m.clock.Now()) }

// stateAt is state without the keys that have expired at an instant.
func (m *member) stateAt(at limit.Instant) map[string]string {
	all := map[string]string{}
	require.NoError(m.web.t, m.ks.Snapshot(func(db int, key []byte, e entry.Entry) {
		if e.Expiry > at {
			all[fmt.Sprintf("%d/%s", db, key)] = fmt.Sprintf("%d %d %x", e.Kind, e.Expiry, counted(e))
		}
	}, func() error { return nil }))
	return all
}

// counted returns the part of a value that must be equal. The free places in the ring of a log
// window hold whatever was in their memory before.
func counted(e entry.Entry) []byte {
	const head, place = 24, 16
	if !e.Kind.IsWindow() || e.Kind.WindowMode() != slidingwindow.Log {
		return e.Value
	}
	first, kept := binary.LittleEndian.Uint32(e.Value[16:]), binary.LittleEndian.Uint32(e.Value[20:])
	ring := e.Value[head:]
	value := bytes.Clone(e.Value[:16])
	for i := range int(kept) {
		at := (int(first) + i) * place % len(ring)
		value = append(value, ring[at:at+place]...)
	}
	return value
}
