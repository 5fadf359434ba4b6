package remote

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
)

// TestWhatTheEngineHasLostIsNotSoughtForEver: a write was done, and its asks were answered with an
// error. Before the charges can be undone the engine loses the write, or another client deletes the
// key. Then the key becomes idle, and the admitted units are charged.
func TestWhatTheEngineHasLostIsNotSoughtForEver(t *testing.T) {
	for name, lose := range map[string]func(c *cloud){
		"failover": func(c *cloud) { c.failover(500*time.Millisecond, 0) },
		"deleted":  func(c *cloud) { c.put([]byte("cs:k"), nil, 0) },
	} {
		for _, first := range []int{0, 3} {
			t.Run(fmt.Sprint(name, " ", first), func(t *testing.T) {
				c := newCloud(1)
				well := network{there: time.Millisecond, back: time.Millisecond, timeout: 200 * time.Millisecond}
				s := serve(c.join(well), bounds())
				for range first {
					s.call(t, take(t, "k", 100, 1))
				}
				c.runFor(time.Second)
				a := take(t, "k", 100, 1)
				s.Submit([]*decide.Ask{a}, false, func() {})
				if first == 0 {
					c.runFor(1500 * time.Microsecond) // the read
				}
				s.back = 60 * time.Millisecond
				c.runFor(55 * time.Millisecond)
				require.Error(t, a.Err)
				lose(c)
				s.back = time.Millisecond
				before := c.requests
				c.runFor(10 * time.Second)
				require.Less(t, c.requests-before, 10, "nothing is asked again and again")
				require.Empty(t, s.queued())
				held := int64(first)
				if name == "deleted" {
					held = 0
				}
				require.Equal(t, held, s.used("k"))
				s.call(t, take(t, "k", 100, 1))
				c.runFor(time.Second)
				require.Equal(t, held+1, s.used("k"), "what was answered with an error is not charged")
			})
		}
	}
}
