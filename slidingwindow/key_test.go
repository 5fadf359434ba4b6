package slidingwindow_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// key is a stored limiter, used as a keyspace uses it. The zero key does not exist.
type key struct {
	mode   slidingwindow.Mode
	value  []byte
	expiry limit.Instant
	plan   slidingwindow.Plan
	before []byte // scratch
	// persistent keeps the key beyond its expiry, as PERSIST does.
	persistent bool
}

// call decides c at now and applies the result. It checks invariants of every call: deciding does
// not change the value, the stored value is valid, and it expires no earlier than the reset.
func (k *key) call(t testing.TB, now limit.Instant, c *slidingwindow.Call) (limit.Decision, error) {
	require.NoError(t, c.Validate())
	if !k.persistent && k.expiry <= now {
		k.mode, k.value = slidingwindow.None, nil
	}
	k.before = append(k.before[:0], k.value...)
	err := slidingwindow.Decide(k.mode, k.value, k.expiry, now, c, &k.plan)
	if !bytes.Equal(k.before, k.value) {
		require.Fail(t, "deciding wrote", "%+v", c)
	}
	p := &k.plan
	if err != nil {
		require.Equal(t, slidingwindow.Keep, p.Action)
		return limit.Decision{}, err
	}
	switch p.Action {
	case slidingwindow.Delete:
		require.NotEqual(t, slidingwindow.None, k.mode)
		k.mode, k.value = slidingwindow.None, nil
	case slidingwindow.Store:
		k.value = p.Apply(k.value, nil)
		k.mode, k.expiry = p.Mode, p.Expiry
		if k.mode != c.Mode || k.expiry != now.Add(p.Decision.ResetAfter) || slidingwindow.Check(k.mode, k.value) != nil {
			require.Fail(t, "stored badly", "%v until %d: %x", k.mode, k.expiry, k.value)
		}
	case slidingwindow.Keep:
	}
	return p.Decision, nil
}

// five is a reply in milliseconds or in seconds.
type five [5]int64

func inMillis(d limit.Decision) five {
	return five{d.Refused, d.Limit, d.Remaining, limit.MillisUp(d.RetryAfter), limit.MillisUp(d.ResetAfter)}
}

func inSeconds(d limit.Decision) five {
	return five{d.Refused, d.Limit, d.Remaining, limit.SecondsUp(d.RetryAfter), limit.SecondsUp(d.ResetAfter)}
}

// at returns an instant of a timeline that begins at the Unix epoch.
func at(d time.Duration) limit.Instant { return limit.Instant(d) }
