//go:build real

package attack_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/tools/bench/attack"
)

// TestAttacksKeepWithinTheBound runs the attacks at small size. The server's memory stays within
// 1.1 times maxmemory plus 64 MiB, it disconnects no client that reads, and it answers all commands
// of another client. -v prints latencies. They are not checked, because they depend on the machine.
func TestAttacksKeepWithinTheBound(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not tell how much memory a process holds")
	}
	attacks, err := attack.Named("large-lrange", "unread-lrange", "large-mget", "large-exec",
		"large-gets-900k", "large-gets-100k", "long-multi", "long-mset", "log-flood", "script-memory", "large-set",
		"large-script", "overwritten-while-read", "mix", "every-command", "many-lrange", "many-smembers", "many-hgetall")
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "cellserver")
	said, err := exec.Command("go", "-C", "../../..", "build", "-o", program, "./cmd/cellserver").CombinedOutput()
	require.NoError(t, err, string(said))
	for i := range attacks {
		t.Run(attacks[i].Name, func(t *testing.T) {
			r, err := attack.Run(t.Context(), &attacks[i], attack.Options{
				Server: attack.Server{Label: "cellserver", Command: []string{program}}, Seed: 1,
			})
			require.NoError(t, err)
			var table strings.Builder
			require.NoError(t, attack.Table(&table, []*attack.Result{r}))
			t.Log("\n" + table.String())
			require.Empty(t, r.Faults())
			require.Positive(t, r.Replies, "the attack did nothing")
		})
	}
}
