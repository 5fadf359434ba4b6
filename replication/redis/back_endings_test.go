package redis_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/replication/redis"
)

// TestEndings: a key is checked in the second in which it expires, or in the next one if that has
// passed.
func TestEndings(t *testing.T) {
	e := redis.NewEnds(start)
	reach := func(after time.Duration, want ...string) {
		t.Helper()
		got := e.Reach(start.Add(after))
		slices.Sort(got)
		require.Equal(t, want, got)
	}
	e.File(0, "a", start.Add(1500*time.Millisecond))
	e.File(1, "a", start.Add(2*time.Second))
	e.File(0, "later", start.Add(time.Hour))
	e.File(0, "past", start.Add(-time.Hour))
	reach(0, "0:past")
	reach(1999 * time.Millisecond)
	reach(2*time.Second, "0:a")
	e.File(0, "late", start.Add(time.Second))
	reach(3*time.Second, "0:late", "1:a")

	e.File(0, "later", start.Add(2*time.Hour))
	e.File(0, "sooner", start.Add(time.Hour))
	e.File(0, "sooner", start.Add(5*time.Second))
	reach(6*time.Second, "0:sooner")
	reach(time.Hour+time.Second, "0:later")
	require.Zero(t, e.Kept())
}

// TestEndingsOfKeysThatAreGone: only existing keys take memory. A lock with a TTL of an hour that
// is released at once leaves nothing behind.
func TestEndingsOfKeysThatAreGone(t *testing.T) {
	e := redis.NewEnds(start)
	e.File(0, "a", start.Add(time.Hour))
	e.File(0, "b", start.Add(time.Hour))
	e.File(1, "a", start.Add(time.Hour))
	require.Equal(t, 3, e.Kept())
	e.Strike(0, "a")
	e.Strike(0, "a")
	e.Strike(2, "a")
	require.Equal(t, 2, e.Kept())
	e.StrikeAll(0)
	e.StrikeAll(0)
	require.Equal(t, 1, e.Kept())
	require.Equal(t, []string{"1:a"}, e.Reach(start.Add(2*time.Hour)))
}
