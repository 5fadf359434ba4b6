package limiters_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// FuzzReserve makes a reservation with any id and any ttl, and settles it. A call with a valid id and ttl passes, and
// all others are errors that charge nothing. The reservation ends when its ttl has passed, to the nanosecond.
func FuzzReserve(f *testing.F) {
	for _, id := range []string{"", "a", "\x00\xff\r\n", strings.Repeat("x", 64), strings.Repeat("x", 65), "POLICY", "MS", "WITHDETAILS", "RESERVE"} {
		f.Add([]byte(id), "30", false)
	}
	for _, ttl := range []string{
		"", "0", "1", "-1", "86400", "86401", "86400000", "86400001", "999", "1000", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "1.5", "1e3", "+5", "007", " 5", "5 ", "0x10", "5s", "\x00",
	} {
		f.Add([]byte("id"), ttl, false)
		f.Add([]byte("id"), ttl, true)
	}
	f.Fuzz(func(t *testing.T, id []byte, ttl string, millis bool) {
		s := inproc.Open(t)
		unit, least := time.Second, int64(1)
		reserve := []string{"TB.ACQUIRE", "k", "100", "1", "1000000", "60", "RESERVE", string(id), ttl}
		renew := []string{"RL.RENEW", "k", string(id), ttl}
		if millis {
			unit, least = time.Millisecond, 1000
			reserve[4] += "000"
			reserve, renew = append(reserve, "MS"), append(renew, "MS")
		}
		n, err := strconv.ParseInt(ttl, 10, 64)
		valid := err == nil && strconv.FormatInt(n, 10) == ttl && n >= least && n <= 86_400*least && len(id) >= 1 && len(id) <= 64
		reply := s.Do(reserve...)
		if !valid {
			require.True(t, strings.HasPrefix(reply, "-ERR"), reply)
			require.Equal(t, ":0\r\n", s.Do("EXISTS", "k"))
			require.True(t, strings.HasPrefix(s.Do(renew...), "-ERR"))
			return
		}
		require.True(t, strings.HasPrefix(reply, "*5\r\n:0\r\n:100\r\n:40\r\n"), reply)
		require.Equal(t, reply, s.Do(reserve...), "a repetition")
		require.Equal(t, ":1\r\n", s.Do(renew...))
		remaining := func() string { return strings.Split(s.Do("TB.ACQUIRE", "k", "100", "1", "1000000", "0"), "\r\n")[3] }
		s.Server().Clock.Advance(time.Duration(n)*unit - time.Nanosecond)
		require.Equal(t, ":40", remaining())
		s.Server().Clock.Advance(time.Nanosecond)
		require.Equal(t, ":100", remaining())
		require.Equal(t, ":2\r\n", s.Do("RL.COMMIT", "k", string(id), "7"))
		require.Equal(t, ":0\r\n", s.Do("RL.CANCEL", "k", string(id)))
		require.Equal(t, ":93", remaining())
		id[len(id)-1] ^= 1
		require.Equal(t, ":-1\r\n", s.Do("RL.COMMIT", "k", string(id), "7"), "another id")
	})
}
