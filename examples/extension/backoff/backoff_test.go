package backoff_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/extension/backoff"

	"github.com/cellserver/cellserver/limit"
)

// TestDecide has rows of instant, call and decision, of one key.
func TestDecide(t *testing.T) {
	const s = time.Second
	call := backoff.Call{First: s, Longest: 3 * s}
	var state []byte
	for _, row := range []struct {
		at           limit.Instant
		refused      int64
		retry, reset time.Duration
	}{
		{0, 0, limit.NoRetry, 2 * s},
		{0, 1, s, 2 * s},
		{limit.Instant(s) - 1, 1, 1, s + 1},
		{-5, 1, s + 5, 2*s + 5}, // time goes back
		{limit.Instant(s), 0, limit.NoRetry, 4 * s},
		{limit.Instant(3 * s), 0, limit.NoRetry, 6 * s}, // not 8: the longest wait is 3
		{limit.Instant(3*s) + 1, 1, 3*s - 1, 6*s - 1},
		{limit.MaxInstant, 0, limit.NoRetry, -1},
	} {
		d, next, until, err := backoff.Decide(state, row.at, call)
		require.NoError(t, err)
		require.Equal(t, limit.Decision{Refused: row.refused, Limit: 1, RetryAfter: row.retry, ResetAfter: row.reset}, d, "%+v", row)
		require.Equal(t, row.refused == 0, next != nil)
		if next != nil {
			state = next
			require.Equal(t, row.reset, until.Sub(row.at))
			require.Less(t, until, limit.MaxInstant)
		}
	}
}

// TestCorruptStatesNeverPanic: whatever is stored, nothing wraps and nothing panics.
func TestCorruptStatesNeverPanic(t *testing.T) {
	_, _, _, err := backoff.Decide([]byte("text"), 0, backoff.Call{First: 1, Longest: 1})
	require.ErrorIs(t, err, limit.ErrWrongType)
	for _, b := range []byte{0, 0x7f, 0x80, 0xff} {
		state := make([]byte, 16)
		for i := range state {
			state[i] = b
		}
		d, _, until, err := backoff.Decide(state, 0, backoff.Call{First: math.MaxInt64, Longest: math.MaxInt64})
		require.NoError(t, err)
		require.GreaterOrEqual(t, d.ResetAfter, time.Duration(0))
		require.Less(t, until, limit.MaxInstant)
	}
}
