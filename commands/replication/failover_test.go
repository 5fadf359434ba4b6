package replication_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestFailoverEndsWhenItsTargetDies: whenever the target dies, the old primary becomes a primary
// again, or is a replica of the target, which had taken over. No FAILOVER ABORT is needed.
func TestFailoverEndsWhenItsTargetDies(t *testing.T) {
	leads, follows := 0, 0
	for step := range 30 {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			primary, target := w.Start(), w.Start()
			target.Follow(primary)
			c := primary.Dial()
			require.Equal(t, inproc.OK, c.Do("SET", "k", "v"))
			primary.Agree(target)
			for _, ends := range [][2]string{{primary.Host, target.Host}, {target.Host, primary.Host}} {
				w.Net.Delay(ends[0], ends[1], func() time.Duration { return time.Millisecond })
			}
			w.Advance(time.Second)
			require.Equal(t, inproc.OK, c.Do("FAILOVER", "TO", target.Host, strconv.Itoa(inproc.Port), "TIMEOUT", "1000"))
			w.Advance(time.Duration(step) * time.Millisecond)
			target.Kill()
			w.Until("it ends", 100*time.Millisecond, 10*time.Second, func() bool {
				return primary.Replication()["master_failover_state"] == "no-failover"
			})
			if primary.Replication()["role"] == "slave" {
				follows++
				return
			}
			leads++
			require.Equal(t, inproc.OK, c.Do("SET", "k", "w"))
		})
	}
	require.Positive(t, leads)
	require.Positive(t, follows)
	t.Logf("it led %d times and followed %d times", leads, follows)
}

// TestNextPrimaryIsNotAheadOfTheLast: the clock of a replica follows its present primary, and not
// the one before, from which messages took long.
func TestNextPrimaryIsNotAheadOfTheLast(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		first, second, third := w.Start(), w.Start(), w.Start()
		w.Net.Delay(first.Host, second.Host, func() time.Duration { return 200 * time.Millisecond })
		second.Follow(first)
		third.Follow(first)
		w.Advance(3 * time.Second)
		first.HandOver(second)
		third.Follow(second)
		w.Advance(3 * time.Second)

		one := []string{"CL.THROTTLE", "k", "0", "1", "1"}
		admitted := time.Now()
		require.Equal(t, ":0", second.Dial().Do(one...)[4:6])
		second.HandOver(third)
		c := third.Dial()
		for time.Since(admitted) < 950*time.Millisecond {
			require.Equal(t, ":1", c.Do(one...)[4:6], "after %v of a second", time.Since(admitted))
			w.Advance(10 * time.Millisecond)
		}
	})
}

// TestChangesAreAcceptedOnceNoOneIsAnswered: REPLICAOF NO ONE replies OK when the server accepts
// writes, so that a program may write at once. In a transaction it does not wait.
func TestChangesAreAcceptedOnceNoOneIsAnswered(t *testing.T) {
	for range 20 {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			primary, replica := w.Start(), w.Start()
			replica.Follow(primary)
			c := replica.Dial()
			c.Command("REPLICAOF", "NO", "ONE")
			c.Command("INCR", "n")
			require.Equal(t, inproc.OK, c.Reply())
			require.Equal(t, ":1\r\n", c.Reply())
			replica.Follow(primary)
			for _, command := range []string{"MULTI", "REPLICAOF NO ONE", "EXEC"} {
				c.Command(strings.Fields(command)...)
			}
			require.Equal(t, inproc.OK, c.Reply())
			require.Equal(t, "+QUEUED\r\n", c.Reply())
			require.Equal(t, "*1\r\n"+inproc.OK, c.Reply())
		})
	}
}

// TestNoOneIsAnsweredWhereNothingIsToBeDone: NO ONE gets a reply at once on a primary, and when
// another order replaces it.
func TestNoOneIsAnsweredWhereNothingIsToBeDone(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary := w.Start()
		c := primary.Dial()
		require.Equal(t, inproc.OK, c.Do("REPLICAOF", "NO", "ONE"))
		replica := w.Start()
		replica.Follow(primary)
		other := replica.Dial()
		other.Command("REPLICAOF", "NO", "ONE")
		require.Contains(t, replica.Dial().Do("REPLICAOF", primary.Host, strconv.Itoa(inproc.Port)), "+OK")
		require.Equal(t, inproc.OK, other.Reply(), "another order ends the wait")
	})
}
