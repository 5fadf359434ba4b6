package redis_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/replication/redis"
)

// TestPace: after a large reading there is a pause, unless the primary requests an
// acknowledgement.
func TestPace(t *testing.T) {
	var p redis.Pace
	require.True(t, p.Due(start))
	p.Read(64<<20, start)
	require.False(t, p.Due(start.Add(time.Second-1)))
	require.True(t, p.Due(start.Add(time.Second)))
	p.Read(1<<50, start)
	require.False(t, p.Due(start.Add(10*time.Second-1)))
	require.True(t, p.Due(start.Add(10*time.Second)))
	p.Hurry()
	require.True(t, p.Due(start))
	p.Read(0, start)
	require.True(t, p.Due(start))
	p.Read(10_000*100, start) // many limiters
	require.True(t, p.Due(start.Add(redis.Period)))
}
