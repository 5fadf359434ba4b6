package keys_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestCivilTime: TIME, EXPIREAT and EXPIRETIME follow the wall clock. When that is stepped,
// decisions and times to live continue by the server's own clock.
func TestCivilTime(t *testing.T) {
	s := inproc.Step(t)
	c := s.Dial()
	second := func(d time.Duration) string {
		return strconv.FormatInt(int64(inproc.Epoch)/int64(time.Second)+int64(d/time.Second), 10)
	}
	trace := func() (replies []string) {
		for range 5 {
			replies = append(replies, c.Do("CL.THROTTLE", "k", "2", "1", "10"))
			s.Clock.Advance(3 * time.Second)
		}
		return append(replies, c.Do("TTL", "k"), c.Do("DEL", "k"))
	}
	want := trace()
	for _, step := range []time.Duration{time.Second, -time.Hour, 10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour} {
		s.Clock.SetCivil(step)
		require.Equal(t, want, trace(), "%s", step)
		now := s.Clock.Now().Add(step).Sub(inproc.Epoch)
		require.Equal(t, inproc.Array(inproc.Bulk(second(now)), inproc.Bulk("0")), c.Do("TIME"))
		require.Contains(t, c.Do("CL.THROTTLE", "e", "1", "1", "10"), "*5\r\n:0\r\n")
		require.Equal(t, ":"+second(now+10*time.Second)+"\r\n", c.Do("EXPIRETIME", "e"))
		require.Equal(t, ":1\r\n", c.Do("EXPIREAT", "e", second(now+100*time.Second)))
		require.Equal(t, ":100\r\n", c.Do("TTL", "e"))
		require.Equal(t, ":100000\r\n", c.Do("PTTL", "e"))
		require.Equal(t, ":"+second(now+100*time.Second)+"000\r\n", c.Do("PEXPIRETIME", "e"))
		require.Equal(t, ":1\r\n", c.Do("EXPIREAT", "e", second(now-time.Second)))
		require.Equal(t, ":0\r\n", c.Do("EXISTS", "e"))
	}
}
