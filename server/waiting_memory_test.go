package server_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// waitingCalls returns calls that wait, for each command that can, with keys of maximum length. The
// call before each, if any, takes what it waits for.
func waitingCalls() map[string][2]string {
	long := strings.Repeat("k", 16_000)
	keys := make([]string, 10)
	for i := range keys {
		keys[i] = fmt.Sprint(i, long)
	}
	many := strings.Join(keys, " ")
	return map[string][2]string{
		"rl.use":     {"RL.USE api " + long, "RL.USE api " + long + " BLOCK 0"},
		"sw.allow":   {"SW.ALLOW " + long + " 1 86400", "SW.ALLOW " + long + " 1 86400 BLOCK 0"},
		"tb.acquire": {"TB.ACQUIRE " + long + " 1 1 86400", "TB.ACQUIRE " + long + " 1 1 86400 BLOCK 0"},
		"cc.acquire": {"CC.ACQUIRE c" + long + " 1 86400 a", "CC.ACQUIRE c" + long + " 1 86400 " + long[:1000] + " BLOCK 0"},
		"blpop":      {"", "BLPOP " + many + " 0"},
		"brpop":      {"", "BRPOP " + many + " 0"},
		"blmpop":     {"", "BLMPOP 0 10 " + many + " LEFT"},
		"blmove":     {"", "BLMOVE l" + long + " d" + long + " LEFT LEFT 0"},
		"brpoplpush": {"", "BRPOPLPUSH l" + long + " d" + long + " 0"},
		"bzpopmin":   {"", "BZPOPMIN " + many + " 0"},
		"bzpopmax":   {"", "BZPOPMAX " + many + " 0"},
		"bzmpop":     {"", "BZMPOP 0 10 " + many + " MIN"},
		"wait":       {"", "WAIT 1 0"},
	}
}

// workerBytes is the memory of a connection in this test in addition to its wait: each has a
// worker, whose scratch and sketch of the most frequent keys contain long keys, too.
const workerBytes = 600 << 10

// TestMemoryOfClientsThatWaitIsBounded: for every kind of wait, its memory is charged to clients,
// and all clients together stay within the bound: their memory is within maxmemory-clients, a tenth
// of maxmemory.
func TestMemoryOfClientsThatWaitIsBounded(t *testing.T) {
	effort.Alone(t)
	const maxMemory = 128 << 20
	clients := 200
	if effort.Long() {
		clients = 500
	}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", fmt.Sprint(maxMemory))
		admin := s.Dial()
		policy := "RL.POLICY SET api LIMITS"
		for i := range 16 {
			policy += fmt.Sprintf(" SW %d 86400 FIXED", i+1)
		}
		require.Equal(t, inproc.OK, admin.Say(policy))
		calls := waitingCalls()
		for _, entry := range s.Engine().Commands.Entries {
			if entry.Flags&command.FlagBlocking != 0 || entry.Waits != nil {
				require.NotEmpty(t, calls[entry.Name][1], "%s may wait: say how", entry.Name)
			}
		}
		for name, call := range calls {
			if call[1] == "" {
				continue
			}
			if call[0] != "" {
				require.False(t, strings.HasPrefix(admin.Say(call[0]), "-"), name)
			}
			before := heapInUse()
			waiting := make([]*inproc.Client, clients)
			for i := range waiting {
				waiting[i] = s.Dial()
				waiting[i].Command(strings.Fields(call[1])...)
			}
			w.Settle()
			grown, held := int64(heapInUse())-int64(before), s.Engine().ClientMemory()
			t.Log(name, "grown", grown, "held", held, "blocked", admin.Info("blocked_clients"))
			require.NotEqual(t, "0", admin.Info("blocked_clients"), name)
			require.LessOrEqual(t, held, int64(maxMemory/10+2<<20), name)
			require.LessOrEqual(t, grown, int64(maxMemory+maxMemory/10+64<<20), name)
			require.LessOrEqual(t, grown, held*3/2+int64(clients)*workerBytes, "%s keeps what is on no account", name)
			for _, c := range waiting {
				require.NoError(t, c.Close())
			}
			w.Settle()
			require.Less(t, s.Engine().ClientMemory(), int64(1<<20), name)
			require.Equal(t, inproc.OK, admin.Do("FLUSHALL"))
		}
	})
}

// heapInUse returns the bytes of objects in the heap after two collections: pools keep their
// objects for one.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
