package transport_test

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/replicationtest"
	cellserver "github.com/cellserver/cellserver/server"
)

// replica opens a connection that is served as a replica from the start of the stream.
func replica(t *testing.T, s *inproc.Served) *inproc.Client {
	t.Helper()
	c := s.Dial()
	require.Equal(t, "+FULLRESYNC "+replicationtest.ID+" 0 cell1\r\n", c.Do("PSYNC", "?", "-1"))
	return c
}

// TestReplicaIsHeardWhileThereIsMore: the server reads from a replica that always has more to
// receive. Its acknowledgement arrives before the end of a stream that grows as fast as the replica
// reads it.
func TestReplicaIsHeardWhileThereIsMore(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		n := replicationtest.New()
		f := inproc.ServeWith(t, kind, func(o *cellserver.Options) { o.Node = n })
		piece := make([]byte, 4<<20)
		n.Write(piece)
		c := replica(t, f)
		c.Send("REPLCONF ACK 9\r\n")
		buf := make([]byte, 1<<20)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(inproc.Patience)))
		for left := len(piece); n.Acked(9) == 0; {
			got, err := c.R.Read(buf)
			require.NoError(t, err)
			if left -= got; left < 2<<20 {
				require.Less(t, n.Role().Offset, int64(512<<20), "the replica is not heard")
				n.Write(piece)
				left += len(piece)
			}
		}
	})
}

// TestSlowReplicaTakesLittleMemory: the server holds only one turn of a long stream that a replica
// does not read, and does not close the replica.
func TestSlowReplicaTakesLittleMemory(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		n := replicationtest.New()
		f := inproc.ServeWith(t, kind, func(o *cellserver.Options) { o.Node = n }, "--write-timeout", "1", "--maxmemory-clients", "64kb")
		stream := bytes.Repeat([]byte("x"), 32<<20)
		n.Write(stream)
		c := replica(t, f)
		admin := f.Dial()
		inproc.Await(t, "the kernel takes no more", func() bool {
			before := n.Counts().BytesOut
			admin.Do("PING")
			f.Engine().EvictClients(1 << 30)
			return before > 0 && n.Counts().BytesOut == before && strings.Contains(admin.Do("CLIENT", "LIST", "TYPE", "replica"), "flags=S ")
		})
		require.Less(t, n.Counts().BytesOut, int64(16<<20))
		list := admin.Do("CLIENT", "LIST", "TYPE", "slave")
		omem, err := strconv.Atoi(inproc.Field(list, "omem"))
		require.NoError(t, err)
		require.LessOrEqual(t, omem, 256<<10)
		got := make([]byte, len(stream))
		_, err = io.ReadFull(c.R, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(stream, got))
	})
}
