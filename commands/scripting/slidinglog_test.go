package scripting_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/server"
)

// tickingClock advances by a microsecond each time that it is read, about as long as the shortest
// script takes.
type tickingClock struct{ *clocktest.Clock }

func (c tickingClock) Now() limit.Instant {
	c.Advance(time.Microsecond)
	return c.Clock.Now()
}

// TestSlidingLogsOfOnePacket: the usual rate limiter in Lua uses a sorted set with an entry for
// each call. math.random distinguishes calls of one instant, and the microseconds of TIME
// distinguish calls of one packet. As in Redis, 10 of 40 calls are admitted.
func TestSlidingLogsOfOnePacket(t *testing.T) {
	const log = `redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 1000000)
		if redis.call('ZCARD', KEYS[1]) >= 10 then return 0 end
		redis.call('ZADD', KEYS[1], now, member) return 1`
	for name, member := range map[string]string{
		"random": "local now = 1784000000000000 local member = now .. '-' .. math.random() ",
		"TIME":   "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2] local member = now ",
	} {
		t.Run(name, func(t *testing.T) {
			s := inproc.OpenWith(t, func(o *server.Options) { o.Clock = tickingClock{clocktest.New(inproc.Epoch)} })
			for i, script := range scriptModes(member + log) {
				packet := strings.Repeat(evalFrame(script, string(rune('a'+i))), 40)
				require.Equal(t, strings.Repeat(":1\r\n", 10)+strings.Repeat(":0\r\n", 30), string(s.Packet([]byte(packet))), script)
			}
		})
	}
}
