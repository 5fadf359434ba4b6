package scripting_test

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// TestAScriptIsNotEndedHalfWay: changes become forbidden at each possible time during a script,
// of which there are some for each command. The script makes all its changes or none.
func TestAScriptIsNotEndedHalfWay(t *testing.T) {
	const writes = 5
	script := "for i = 1, " + fmt.Sprint(writes) + " do redis.call('SET', 'k' .. i, '1') end"
	for _, halt := range []uint32{command.HaltReadOnly, command.HaltNoReplicas, command.HaltMasterDown} {
		var readings atomic.Int64
		var at int64
		refuse := func() {}
		readings.Store(-1 << 40)
		s := inproc.StepWith(t, func(o *server.Options) {
			o.Env = func(o *env.Options) {
				stopwatch := o.Stopwatch
				o.Stopwatch = func() time.Duration {
					if readings.Add(1) == at {
						refuse()
					}
					return stopwatch()
				}
			}
		})
		e, c := s.Engine(), s.Dial()
		refuse = func() { e.SetHalt(halt, true) }
		whole := 0
		for at = 1; whole < 2; at++ {
			readings.Store(0)
			reply, err := e.Execute(t.Context(), e.Users.Default, &net.TCPAddr{}, 0, [][]byte{[]byte("EVAL"), []byte(script), []byte("0")})
			readings.Store(-1 << 40)
			require.NoError(t, err)
			e.SetHalt(halt, false)
			keys := inproc.Numbers(c.Do("DBSIZE"))[0]
			require.Contains(t, []int64{0, writes}, keys, "halt %d at reading %d: %s", halt, at, reply)
			if keys == writes {
				whole++
			}
			require.Equal(t, inproc.OK, c.Do("FLUSHALL"))
			require.Less(t, at, int64(1000))
		}
	}
}
