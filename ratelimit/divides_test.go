package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/ratelimit"
)

// TestJointsThatDivide: the states of a call under several policies may be changed one after another, unless the call has an
// identity or waits.
func TestJointsThatDivide(t *testing.T) {
	f := open(t, main(t, "SW 3 60"))
	divides := func(keys []string, with func(*ratelimit.Call)) bool {
		var parts []ratelimit.Part
		for _, key := range keys {
			c := f.call(key)
			with(&c)
			parts = append(parts, ratelimit.Part{Lookup: ratelimit.Lookup{Call: c}})
		}
		a := new(decide.Ask)
		if len(parts) == 1 {
			require.NoError(t, f.FindShared(&parts[0].Lookup))
			f.Joint(&parts[0].Lookup, a)
		} else {
			_, err := f.FindAllShared(parts)
			require.NoError(t, err)
			f.JointAll(parts, false, a)
		}
		return a.Program.(decide.Divisible).Divides()
	}
	require.True(t, divides([]string{"k", "l"}, func(*ratelimit.Call) {}))
	require.False(t, divides([]string{"k"}, func(*ratelimit.Call) {}))
	require.False(t, divides([]string{"k", "l"}, func(c *ratelimit.Call) { c.Mode = ratelimit.Block }))
	require.False(t, divides([]string{"k", "l"}, func(c *ratelimit.Call) {
		c.ID = idempotency.Call{Token: []byte("t"), TTL: time.Minute, Max: 9}
	}))
}
