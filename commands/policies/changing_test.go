package policies_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestEachAnswerIsOfAPolicyInForce: 32 clients call while four administrators each keep changing
// a policy and an override of it. The limits encode their version: each answer has, in both
// clauses, a version that was in force during the call.
func TestEachAnswerIsOfAPolicyInForce(t *testing.T) {
	const policies, first = 4, 1000
	last := first + int64(effort.Steps(400, 100_000))/policies
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		var begun, done [policies]atomic.Int64 // versions
		change := func(admin *inproc.Client, i int, version int64) {
			begun[i].Store(version)
			limits := fmt.Sprintf(" LIMITS TB %d 1 3600 SW %d 3600 FIXED", version, version)
			admin.Set(fmt.Sprintf("RL.POLICY SET api%d", i)+limits, fmt.Sprintf("RL.OVERRIDE SET api%d vip*", i)+limits)
			done[i].Store(version)
		}
		var admins []*inproc.Client
		for i := range policies {
			admins = append(admins, f.Dial())
			change(admins[i], i, first)
		}
		var clients, changing sync.WaitGroup
		var calls atomic.Int64
		faults := make(chan string, 32)
		for i := range 32 {
			c, which := f.Dial(), i%policies
			name, key := fmt.Sprintf("api%d", which), fmt.Sprintf("k%d", i%5)
			if i/policies%2 == 0 {
				key = "vip" + key
			}
			clients.Go(func() {
				for done[which].Load() < last {
					from := done[which].Load()
					if _, err := c.Write(inproc.Encode(nil, "RL.USE", name, key, strconv.Itoa(i%2), "WITHDETAILS")); err != nil {
						faults <- err.Error()
						return
					}
					reply, err := inproc.ReadReply(c.R)
					to := begun[which].Load()
					calls.Add(1)
					if fault := versionFault(reply, from, to); err != nil || fault != "" {
						faults <- fmt.Sprint(fault, err)
						return
					}
				}
			})
		}
		for i, admin := range admins {
			changing.Go(func() {
				defer done[i].Store(last) // the clients end, whatever happens
				for v := int64(first + 1); v <= last; v++ {
					change(admin, i, v)
				}
			})
		}
		changing.Wait()
		clients.Wait()
		close(faults)
		for fault := range faults {
			require.Fail(t, fault)
		}
		changes := 2 * policies * (last - first)
		t.Logf("%d calls during %d changes", calls.Load(), changes)
		require.Positive(t, calls.Load())
	})
}

// versionFault returns what is wrong with a reply to a call during which the given versions were
// in force.
func versionFault(reply string, from, to int64) string {
	fives := strings.Split(reply, "*5\r\n")
	if len(fives) != 4 {
		return fmt.Sprintf("%q", reply)
	}
	var version string
	for i, five := range fives[1:] {
		limit := strings.Split(five, "\r\n")[1]
		if i > 0 && limit != version {
			return fmt.Sprintf("of two versions: %q", reply)
		}
		version = limit
	}
	if n, err := strconv.ParseInt(version[1:], 10, 64); err != nil || n < from || n > to {
		return fmt.Sprintf("from %d to %d, but %q", from, to, reply)
	}
	return ""
}

// TestEveryUnitIsCountedOnce: clients use a policy of several clauses in every possible way while
// its limits and its candidate change. In the end the used units of each clause are those that
// the clients were granted.
func TestEveryUnitIsCountedOnce(t *testing.T) {
	each := effort.Steps(100, 10_000)
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin := f.Dial()
		set := func(limit int) {
			admin.Set(fmt.Sprintf("RL.POLICY SET api LIMITS SW %d 3600 FIXED TB %d 1 3600 CL %d 1 3600", limit, limit, limit-1),
				fmt.Sprintf("RL.POLICY TRY api LIMITS TB %d 1 3600", limit))
		}
		set(500_000)
		ways := [][]string{
			{"RL.USE api k"},
			{"MULTI", "RL.USE api k 2", "RL.USE api k", "EXEC"},
			{"EVAL script 0"},
			{"RL.USE api k BLOCK 0"},
			{"RL.USE api k 3 PARTIAL"},
			{"RL.USE api k 2 FORCE"},
			{"RL.USE api k 5", "RL.USE api k -3"},
			{"RL.USE api k 100 PEEK", "RL.EXPLAIN api k 2", "RL.USE api k 0"},
		}
		granted := []int64{1, 3, 2, 1, 3, 2, 2, 0}
		const script = "return redis.call('RL.USE', 'api', 'k')[1] + redis.call('RL.USE', 'api', KEYS[1] or 'k')[1]"
		var clients sync.WaitGroup
		faults := make(chan string, 16)
		for i := range 16 {
			c, way := f.Dial(), ways[i%len(ways)]
			clients.Go(func() {
				for range each {
					for _, words := range way {
						call := strings.Fields(words)
						if call[0] == "EVAL" {
							call[1] = script
						}
						_, err := c.Write(inproc.Encode(nil, call...))
						reply := ""
						if err == nil {
							reply, err = inproc.ReadReply(c.R)
						}
						if err != nil || reply[0] == '-' || strings.HasPrefix(reply, "*5\r\n:1") || strings.Contains(reply, "\r\n-") {
							faults <- fmt.Sprint(words, reply, err)
							return
						}
					}
				}
			})
		}
		done := make(chan struct{})
		go func() {
			clients.Wait()
			close(done)
		}()
		for changes := 1; ; changes++ {
			set(500_000 + changes)
			select {
			case fault := <-faults:
				require.Fail(t, fault)
			case <-done:
				require.Empty(t, faults)
				want := int64(0)
				for i := range 16 {
					want += int64(each) * granted[i%len(ways)]
				}
				set(1_000_000)
				for i, five := range strings.Split(admin.Say("RL.USE api k 0 WITHDETAILS"), "*5\r\n")[2:] {
					left := strings.Split(five, "\r\n")[2]
					require.Equal(t, fmt.Sprintf(":%d", 1_000_000-want), left, "clause %d", i+1)
				}
				t.Logf("%d units during %d changes", want, 2*changes)
				return
			default:
			}
		}
	})
}
