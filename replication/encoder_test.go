package replication_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/transport"
)

// encoder is an Encoder that the test controls.
type encoder struct {
	replication.EncoderStart
	acked, heard        uint64
	online, closed      bool
	pings, asks, filled int
}

func (e *encoder) Fill(out []byte, _ int) ([]byte, bool, error) {
	e.filled++
	e.Sleep(e.Tail.End())
	return append(out, "x"...), false, nil
}

func (e *encoder) Acknowledge(offset int64) { e.heard = uint64(offset); e.acked = e.heard / 2 }
func (e *encoder) Acked() uint64            { return e.acked }
func (e *encoder) Online() bool             { return e.online }
func (e *encoder) Ping()                    { e.pings++ }
func (e *encoder) Ask()                     { e.asks++ }
func (e *encoder) Closed()                  { e.closed = true }

// TestEncoderIsAReplica: a Redis is listed and counted as a replica, with the offset of this
// server's stream that corresponds to its own.
func TestEncoderIsAReplica(t *testing.T) {
	s, clock := begun(t, defaults())
	c, g := &conn{}, &encoder{}
	pump, err := s.ServeRedis(call(7, c), func(l replication.EncoderStart) (replication.Encoder, error) {
		g.EncoderStart = l
		return g, nil
	})
	require.NoError(t, err)
	require.Zero(t, g.From)
	s.Write(frameOf(2, make([]byte, 91)...)) // 100 bytes
	require.Equal(t, uint64(100), g.Tail.End())
	require.False(t, s.Replicas()[0].Online)

	g.online = true
	out, _, err := pump.Fill(nil, 10)
	require.NoError(t, err)
	require.Equal(t, "x", string(out))
	wakes := c.wakes.Load()
	s.Write(frameOf(2, make([]byte, 70<<10)...))
	require.Greater(t, c.wakes.Load(), wakes, "it slept")

	s.Acknowledge(7, protocol.Ack{Applied: 200})
	r := s.Replicas()[0]
	require.True(t, r.Online && r.Redis)
	require.Equal(t, uint64(100), r.Acked)

	_, is := s.Await(1, 1<<50, c)
	require.Equal(t, transport.Pending, is)
	require.Equal(t, 1, g.asks, "it acknowledges at once if somebody waits")
	for range 10 {
		clock.Advance(time.Second)
	}
	require.Equal(t, 1, g.pings)

	s.Acknowledge(7, protocol.Ack{Applied: 1 << 62}) // offsets of the Redis may be larger than those of the stream
	require.Equal(t, uint64(1<<62), g.heard)
	_, err = s.ServeRedis(call(7, c), nil)
	require.Error(t, err, "it is there already")
	s.Begin(replication.History{ID: id2, Offset2: -1}, 0)
	_, _, err = pump.Fill(nil, 10)
	require.Error(t, err, "another history ends it")
	pump.Closed()
	require.True(t, g.closed)
	require.Empty(t, s.Replicas())
}

// TestEncoderCannotBegin: a replica whose encoder cannot be made is removed.
func TestEncoderCannotBegin(t *testing.T) {
	s, _ := begun(t, defaults())
	why := errors.New("no")
	_, err := s.ServeRedis(call(7, &conn{}), func(replication.EncoderStart) (replication.Encoder, error) { return nil, why })
	require.ErrorIs(t, err, why)
	require.Empty(t, s.Replicas())
}
