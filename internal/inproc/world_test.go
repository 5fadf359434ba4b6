package inproc_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestVirtualTime lets a minute pass for a limit, and ten minutes for a waiting client.
func TestVirtualTime(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		c := s.Dial()
		require.Equal(t, inproc.Five(0, 16, 15, -1, 2), c.Do("CL.THROTTLE", "k", "15", "30", "60"))
		require.Equal(t, inproc.Five(0, 16, 0, -1, 32), c.Do("CL.THROTTLE", "k", "15", "30", "60", "15"))
		w.Advance(time.Minute)
		require.Equal(t, inproc.Five(0, 16, 15, -1, 2), c.Do("CL.THROTTLE", "k", "15", "30", "60"))
		began := time.Now()
		c.Patience = time.Hour
		c.Command("BLPOP", "list", "600")
		c.Silent()
		c.Expect("*-1\r\n")
		require.Equal(t, 600*time.Second+time.Millisecond, time.Since(began).Truncate(time.Millisecond))
	})
}

// TestReplicaInABubble makes a replica follow a primary, lose its link, and be promoted.
func TestReplicaInABubble(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		a, b := w.Start("--appendonly", "yes", "--appendfsync", "always"), w.Start("--appendonly", "yes")
		c := a.Dial()
		require.Equal(t, "+OK\r\n", c.Do("SET", "before", "1"))
		b.Follow(a)
		require.Equal(t, "+OK\r\n", c.Do("SET", "after", "1", "EX", "30"))
		require.Equal(t, inproc.Five(0, 16, 15, -1, 2), c.Do("CL.THROTTLE", "k", "15", "30", "60"))
		a.Agree(b)
		require.Len(t, b.State(), 3)
		w.Net.Part(a.Host, b.Host)
		require.Equal(t, "+OK\r\n", c.Do("SET", "parted", "1"))
		w.Advance(time.Minute)
		require.Equal(t, "$-1\r\n", b.Dial().Do("GET", "parted"))
		w.Net.Join(a.Host, b.Host)
		w.Until("the link is up again", time.Second, time.Minute, func() bool { return b.Replication()["master_link_status"] == "up" })
		a.Agree(b)
		a.Kill()
		require.Equal(t, "+OK\r\n", b.Dial().Do("REPLICAOF", "NO", "ONE"))
		w.Until("promoted", time.Millisecond, time.Second, func() bool { return b.Replication()["role"] == "master" })
		require.Equal(t, "+OK\r\n", b.Dial().Do("SET", "own", "1"))
		a.Restart()
		require.Equal(t, "$1\r\n1\r\n", a.Dial().Do("GET", "parted"))
	})
}
