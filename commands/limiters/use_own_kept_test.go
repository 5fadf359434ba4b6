package limiters_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestOwnLimitsOutliveRestarts: what calls with LIMIT have used is in the log, in a snapshot and on a replica, although
// there is no policy. A restart is at the same instant.
func TestOwnLimitsOutliveRestarts(t *testing.T) {
	for name, options := range map[string][]string{
		"log":      {"--appendonly", "yes", "--appendfsync", "always"},
		"snapshot": nil,
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				s := w.Start(options...)
				c := s.Dial()
				require.Contains(t, c.Say("RL.USE rls.a k 3 LIMIT 5 86400"), ":0\r\n:5\r\n:2\r\n")
				require.Contains(t, c.Say("RL.USE rls.a k 9 LIMIT 5 86400"), ":1\r\n:5\r\n:0\r\n")
				require.Contains(t, c.Say("RL.USE rls.a j 4 ID i LIMIT 5 86400"), ":0\r\n:5\r\n:1\r\n")
				if name == "snapshot" {
					require.Equal(t, "+OK\r\n", c.Say("SAVE"))
				}
				s.Kill()
				s.Restart()
				c = s.Dial()
				require.Contains(t, c.Say("RL.USE rls.a k 0 LIMIT 20 86400"), ":0\r\n:20\r\n:8\r\n")
				require.Contains(t, c.Say("RL.USE rls.a j 4 ID i LIMIT 5 86400"), ":0\r\n:5\r\n:1\r\n", "a repetition")
				replica := w.Start()
				replica.Follow(s)
				require.Contains(t, c.Say("RL.USE rls.a k 2 LIMIT 20 86400"), ":0\r\n:20\r\n:6\r\n")
				s.Agree(replica)
			})
		})
	}
}
