package server_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
	long "github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// lengths counts the bytes of records, and records up to which positions they are to be written.
type lengths struct {
	records
	asked []uint64
}

func (l *lengths) Append(record []byte, refs []long.Ref, _ limit.Instant) uint64 {
	n := len(record)
	for _, r := range refs {
		n += len(r.Bytes)
	}
	long.ReleaseAll(refs)
	return l.n.Add(uint64(n))
}

func (l *lengths) Await(position uint64, _ transport.Peer) transport.Outcome {
	l.asked = append(l.asked, position)
	return transport.Kept
}

// TestPrimaryWritesInRounds: effects of a followed Redis are written at the end of a round,
// together with what was read from it meanwhile, and before that only if much waits.
func TestPrimaryWritesInRounds(t *testing.T) {
	journal := &lengths{}
	e, _, _ := startKept(t, journal)
	p := e.OpenPrimary(&net.TCPAddr{})
	defer p.Close()
	set := func(bytes int) {
		t.Helper()
		require.NoError(t, p.Run(t.Context(), 0, [][]byte{[]byte("SET"), []byte("k"), make([]byte, bytes)}))
	}
	for range 10 {
		set(1000)
	}
	require.Empty(t, journal.asked)
	p.Write()
	require.Equal(t, []uint64{journal.Position()}, journal.asked)
	p.Write()
	require.Len(t, journal.asked, 1, "there is nothing new")

	for range 8 {
		set(300_000)
	}
	require.Len(t, journal.asked, 3, "1 MiB waits at most, and one command")

	p.Write()
	journal.n.Add(100) // effects of another client
	p.Write()
	require.Equal(t, journal.Position(), journal.asked[len(journal.asked)-1])
}
