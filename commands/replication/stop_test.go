package replication_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestExpiriesReadTheSameBehindAStop: a replica receives nothing for longer than its clock
// remembers the delays of its primary's clock. Then it receives everything at once, and its link
// is cut. Its keys expire when those of the primary do, to the millisecond.
func TestExpiriesReadTheSameBehindAStop(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary, replica := w.Start("--repl-timeout", "120"), w.Start("--repl-timeout", "120")
		w.Net.Delay(primary.Host, replica.Host, func() time.Duration { return 15 * time.Millisecond })
		replica.Follow(primary)
		require.Equal(t, inproc.OK, primary.Dial().Do("SET", "k", "v", "PXAT", "1800000000000"))
		w.Advance(time.Second)
		// The delay improves, which the instants do not show.
		w.Net.Delay(primary.Host, replica.Host, func() time.Duration { return time.Millisecond })
		w.Advance(30 * time.Second)
		same := func(when string) {
			for _, n := range []*inproc.Node{primary, replica} {
				require.Equal(t, ":"+strconv.Itoa(1800000000000)+"\r\n", n.Dial().Do("PEXPIRETIME", "k"), when)
			}
		}
		same("before")
		for range 3 {
			w.Net.Hold(primary.Host, replica.Host)
			w.Advance(25 * time.Second)
			w.Net.Release(primary.Host, replica.Host)
			w.Advance(time.Second)
			w.Net.Cut(primary.Host, replica.Host)
			w.Advance(5 * time.Second)
			same("behind the stop")
		}
	})
}
