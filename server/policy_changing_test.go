package server_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/commands/policies"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
)

// policyChanges is how many changes a test makes: few, or those of CELL_POLICY_CHANGES.
func policyChanges(t *testing.T, few int) int64 {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("CELL_POLICY_CHANGES"))
	if err != nil {
		n = few
	}
	return int64(n)
}

// TestEachAnswerIsOfAPolicyInForce: 32 clients call while a policy and an override change all
// the time. The limits say which version they are of: each answer has one that was in force
// during the call, in both clauses.
func TestEachAnswerIsOfAPolicyInForce(t *testing.T) {
	last := policyChanges(t, 400)
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin := f.dial()
		var begun, done atomic.Int64 // versions
		change := func(version int64) {
			begun.Store(version)
			limits := fmt.Sprintf(" LIMITS TB %d 1 3600 SW %d 3600 FIXED", version, version)
			admin.set("RL.POLICY SET api"+limits, "RL.OVERRIDE SET api vip*"+limits)
			done.Store(version)
		}
		change(1000)
		var clients sync.WaitGroup
		var calls atomic.Int64
		faults := make(chan string, 32)
		for i := range 32 {
			c := f.dial()
			key := fmt.Sprintf("k%d", i%5)
			if i%2 == 0 {
				key = "vip" + key
			}
			clients.Go(func() {
				for done.Load() < 1000+last {
					from := done.Load()
					_ = c.SetDeadline(time.Now().Add(patience)) // else a call fails
					if _, err := c.Write(frame("RL.USE", "api", key, strconv.Itoa(i%2), "WITHDETAILS")); err != nil {
						faults <- err.Error()
						return
					}
					reply, err := readReply(c.r)
					to := begun.Load()
					calls.Add(1)
					if fault := versionFault(reply, from, to); err != nil || fault != "" {
						faults <- fmt.Sprint(fault, err)
						return
					}
				}
			})
		}
		for v := range last {
			change(1001 + v)
		}
		clients.Wait()
		close(faults)
		for fault := range faults {
			require.Fail(t, fault)
		}
		t.Logf("%d calls during %d changes", calls.Load(), 2*last)
		require.Positive(t, calls.Load())
	})
}

// versionFault says what is wrong with an answer to a call during which versions were in force.
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

// TestNoLoopWaitsForAChange: while somebody changes policies, and has not come to an end, others
// are served, and whoever wants to see or change policies waits.
func TestNoLoopWaitsForAChange(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--io-threads", "1")
		c := f.dial()
		c.set(hour)
		busy, end := make(chan struct{}), make(chan struct{})
		var changing sync.WaitGroup
		changing.Go(func() {
			f.Engine().WithStore(0, func(st env.Store) {
				by := registry.Author{}
				_ = f.Engine().Options.Policies.Update(policies.Store(st), by, func(*policy.Builder, limit.Instant) ([]registry.Edit, error) {
					close(busy)
					<-end
					return nil, nil // which is no error
				})
			})
		})
		<-busy
		var wait []*client
		for _, words := range append([]string{"RL.CHANGES", "RL.POLICY DUMP", "RL.POLICY RELOAD"}, showing...) {
			w := f.dial()
			w.command(strings.Fields(words)...)
			wait = append(wait, w)
		}
		for range 3 {
			require.Contains(t, c.say("RL.USE api k"), "*5\r\n:0\r\n:10\r\n")
			require.Contains(t, c.say("RL.EXPLAIN api k"), bulk("answer"))
			require.Equal(t, "+PONG\r\n", c.say("PING"))
			require.Contains(t, c.say("INFO everything"), "connected_clients")
		}
		close(end)
		changing.Wait()
		for _, w := range wait {
			w.reply()
		}
	})
}
