package scripting_test

import (
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/session"
)

// TestAScriptIsNotEndedHalfWay has changes refused at each reading of the stopwatch of a script, of
// which there are some for each command: it does all that it is for, or nothing.
func TestAScriptIsNotEndedHalfWay(t *testing.T) {
	const writes = 5
	script := "for i = 1, " + fmt.Sprint(writes) + " do redis.call('SET', 'k' .. i, '1') end"
	for _, halt := range []uint32{command.HaltReadOnly, command.HaltNoReplicas, command.HaltMasterDown} {
		whole := 0
		for at := 1; whole < 2; at++ {
			ks := keyspace.New(keyspace.Options{Clock: clocktest.New(inproc.Epoch)})
			var e *session.Engine
			readings, began := -1000, time.Now()
			e = session.NewEngine(env.Options{
				Ledger: ks.Ledger(), NewStore: func() env.Store { return server.NewStore(ks) }, Now: ks.Clock().Now,
				Stopwatch: func() time.Duration {
					if readings++; readings == at {
						e.SetHalt(halt, true)
					}
					return time.Since(began)
				},
				Settings: config.Default(), Log: slog.New(slog.DiscardHandler),
			}, commands.NewTable())
			readings = 0
			reply, err := e.Execute(t.Context(), e.Users.Default, &net.TCPAddr{}, 0, [][]byte{[]byte("EVAL"), []byte(script), []byte("0")})
			require.NoError(t, err)
			keys := 0
			for _, db := range ks.Stats().Databases {
				keys += db.Keys
			}
			require.Contains(t, []int{0, writes}, keys, "halt %d at reading %d: %s", halt, at, reply)
			if keys == writes {
				whole++
			}
			e.Close()
			ks.Close()
			require.Less(t, at, 1000)
		}
	}
}
