package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// TestKeysDoNotExpireDuringClientPause: while a pause is on, of writes or of all, a key that
// is past its expiry is found by nobody, but it is removed, and counted as expired, only
// once the pause is over.
func TestKeysDoNotExpireDuringClientPause(t *testing.T) {
	for _, mode := range []string{"WRITE", "ALL"} {
		t.Run(mode, func(t *testing.T) {
			s, err := inproc.Feed(limit.Instant(1_700_000_000_000_000_000))
			require.NoError(t, err)
			defer s.Close()
			do := func(args ...string) string {
				reply, err := s.Do(args...)
				require.NoError(t, err)
				return string(reply)
			}
			expired := func() int64 { return s.Server().Keyspace().Stats().Expired }
			require.Equal(t, "+OK\r\n", do("SET", "k", "v", "PX", "10"))
			require.Equal(t, "+OK\r\n", do("CLIENT", "PAUSE", "100000", mode))
			s.Server().Clock.Advance(time.Second)
			s.Server().Keyspace().Sweep(1000)
			require.Zero(t, expired())
			if mode == "WRITE" {
				require.Equal(t, "$-1\r\n", do("GET", "k"))
				require.Equal(t, ":0\r\n", do("EXISTS", "k"))
				require.Equal(t, ":1\r\n", do("DBSIZE"))
				require.Equal(t, "+OK\r\n", do("CLIENT", "UNPAUSE"))
			} else {
				s.Server().Clock.Advance(100 * time.Second)
				require.Eventually(t, func() bool {
					s.Server().Keyspace().Sweep(1000)
					return expired() == 1
				}, time.Minute, time.Millisecond)
			}
			s.Server().Keyspace().Sweep(1000)
			require.Equal(t, int64(1), expired())
			require.Equal(t, ":0\r\n", do("DBSIZE"))
		})
	}
}
