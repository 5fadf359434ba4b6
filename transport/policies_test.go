package transport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command/policystore"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
)

// documentOfMany returns the text of a policy with n overrides, or of n policies. version makes
// texts differ.
func documentOfMany(n, version int, policies bool) string {
	var b strings.Builder
	b.WriteString("policies:\n")
	if policies {
		for i := range n {
			fmt.Fprintf(&b, "  p%05d: {limits: [TB %d 1 60]}\n", i, version)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "  api:\n    limits: [TB %d 1 60]\n    overrides:\n", version)
	for i := range n {
		fmt.Fprintf(&b, "      k%05d: {limits: [TB %d 1 60]}\n", i, version)
	}
	return b.String()
}

// own is the policy of the clients, in addition to those of a text.
const own = "  own: {limits: [TB 1000000 1000000 1]}\n"

// BenchmarkManyChanges changes all of 10,000 entries at once, repeatedly, and measures the calls of
// other clients meanwhile. One operation is a change of all entries. Idle measures the same clients
// without changes.
func BenchmarkManyChanges(b *testing.B) {
	const entries = 9_999 // and one policy in addition
	for _, kind := range []string{"Idle", "Diff", "Overrides", "Policies", "File", "Delete"} {
		for _, kept := range []string{"no", "yes"} {
			b.Run(kind+"/appendonly="+kept, func(b *testing.B) {
				file := filepath.Join(b.TempDir(), "policies.yaml")
				texts := [2]string{documentOfMany(entries, 5, kind == "Policies"), documentOfMany(entries, 6, kind == "Policies")}
				flags := []string{"--appendonly", kept, "--appendfsync", "everysec"}
				if kind == "File" {
					require.NoError(b, os.WriteFile(file, []byte(texts[0]), 0o600))
					flags = append(flags, "--policy-file", file)
				}
				f := inproc.Serve(b, "auto", flags...)
				admin := f.Dial()
				if kind != "File" {
					admin.Do("RL.POLICY", "APPLY", texts[0])
				}
				admin.Set("RL.POLICY SET own LIMITS TB 1000000 1000000 1")
				var stop atomic.Bool
				var clients sync.WaitGroup
				var use, ping [2]time.Duration
				for words, longest := range map[string]*[2]time.Duration{"RL.USE own k": &use, "PING": &ping} {
					other := f.Dial()
					clients.Go(func() { *longest = callUntil(&stop, other, strings.Fields(words)) })
				}
				b.ResetTimer()
				for i := range b.N {
					text := texts[(i+1)%2]
					switch kind {
					case "Idle":
						<-time.After(300 * time.Millisecond)
					case "Diff":
						require.NotContains(b, admin.Do("RL.POLICY", "DIFF", text), "-ERR")
					case "Delete":
						b.StopTimer()
						admin.Do("RL.POLICY", "APPLY", text+own)
						b.StartTimer()
						require.Equal(b, ":1\r\n", admin.Do("RL.POLICY", "DEL", "api"))
					case "File":
						require.NoError(b, os.WriteFile(file, []byte(text), 0o600))
						require.Equal(b, fmt.Sprintf(":%d\r\n", entries+1), admin.Do("RL.POLICY", "RELOAD"))
					default:
						require.NotContains(b, admin.Do("RL.POLICY", "APPLY", text+own), "-")
					}
				}
				b.StopTimer()
				stop.Store(true)
				clients.Wait()
				b.ReportMetric(float64(use[0].Microseconds()), "µs-use")
				b.ReportMetric(float64(use[1].Microseconds()), "µs-use-99.9%")
				b.ReportMetric(float64(ping[0].Microseconds()), "µs-ping")
				b.ReportMetric(float64(ping[1].Microseconds()), "µs-ping-99.9%")
			})
		}
	}
}

// callUntil makes calls, one after the other. It returns the longest duration, and the one that one
// call in a thousand exceeds.
func callUntil(stop *atomic.Bool, c *inproc.Client, words []string) (longest [2]time.Duration) {
	var all []time.Duration
	call := inproc.Encode(nil, words...)
	for !stop.Load() {
		began := time.Now()
		_ = c.SetDeadline(began.Add(inproc.Patience))
		if _, err := c.Write(call); err != nil {
			return longest
		}
		if _, err := inproc.ReadReply(c.R); err != nil {
			return longest
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return [2]time.Duration{all[len(all)-1], all[len(all)-1-len(all)/1000]}
}

// TestNoLoopWaitsForAChange: while a change of policies is in progress, other clients are served.
// Calls that read or change policies wait.
func TestNoLoopWaitsForAChange(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind, "--io-threads", "1")
		c := f.Dial()
		c.Set("RL.POLICY SET api LIMITS SW 10 3600 FIXED ANCHOR FIRST")
		busy, end := make(chan struct{}), make(chan struct{})
		var changing sync.WaitGroup
		changing.Go(func() {
			f.Engine().WithStore(0, func(st env.Store) {
				by := registry.Author{}
				_ = f.Engine().Options.Policies.Update(policystore.Store(st.(policystore.Backing)), by, func(*policy.Builder, limit.Instant) ([]registry.Edit, error) {
					close(busy)
					<-end
					return nil, nil // not an error
				})
			})
		})
		<-busy
		var wait []*inproc.Client
		for _, words := range []string{
			"RL.CHANGES", "RL.POLICY DUMP", "RL.POLICY RELOAD", "RL.POLICY GET api", "RL.POLICY LIST", "RL.POLICY DIFF x", "RL.OVERRIDE LIST api", "RL.RULES", "RL.MATCH shop foo=x",
		} {
			w := f.Dial()
			w.Command(strings.Fields(words)...)
			wait = append(wait, w)
		}
		for range 3 {
			require.Contains(t, c.Say("RL.USE api k"), "*5\r\n:0\r\n:10\r\n")
			require.Contains(t, c.Say("RL.EXPLAIN api k"), inproc.Bulk("answer"))
			require.Equal(t, "+PONG\r\n", c.Say("PING"))
			require.Contains(t, c.Say("INFO everything"), "connected_clients")
		}
		close(end)
		changing.Wait()
		for _, w := range wait {
			w.Reply()
		}
	})
}
