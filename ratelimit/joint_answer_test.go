package ratelimit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/ratelimit"
)

// TestJointsThatCannotBeDecided: the error of the store is that of the answer, and nothing is counted.
func TestJointsThatCannotBeDecided(t *testing.T) {
	f := open(t, main(t, "SW 1 60 FIXED BAN 1 60 60"))
	l := ratelimit.Lookup{Call: f.call("k")}
	require.NoError(t, f.FindShared(&l))
	for _, why := range []error{decide.Unavailable("timeout"), errors.New("other")} {
		var a decide.Ask
		f.Joint(&l, &a)
		require.Equal(t, "api:k", string(a.Key))
		a.Err = why
		_, err := f.AnswerJoint(&l, &a)
		require.Equal(t, why, err)
	}
	require.Equal(t, [2]int64{}, f.counted("api"))
	f.EndBatch(start)
}

// TestAKeyspaceDecidesJoints: each ask of a joint has a key of its own there.
func TestAKeyspaceDecidesJoints(t *testing.T) {
	f := open(t, main(t, "SW 1 60 FIXED TB 5 1 60 BAN 1 60 600"))
	for i := range 3 {
		l := ratelimit.Lookup{Call: f.call("k")}
		require.NoError(t, f.FindShared(&l))
		var a decide.Ask
		f.Joint(&l, &a)
		f.store.Decide(&a)
		is, err := f.AnswerJoint(&l, &a)
		require.NoError(t, err)
		require.Equal(t, f.store.Now(), a.Now)
		require.Equal(t, i > 0, is.Decision.Refused > 0)
		if i > 0 {
			require.Equal(t, 600*time.Second, is.Decision.RetryAfter)
		}
		f.EndBatch(start)
	}
	require.Equal(t, 3, f.store.Len(0))
}
