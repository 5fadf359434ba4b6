package server_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
)

// documentOfMany is the text of a policy with n overrides, or of n policies, of a version.
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

// own is the policy of the clients beside those of a text.
const own = "  own: {limits: [TB 1000000 1000000 1]}\n"

// BenchmarkManyChanges has all of 10,000 entries changed at once, again and again, and
// measures the calls of other clients meanwhile: one operation is a change of all. Idle says
// what the same clients see when nothing is changed.
func BenchmarkManyChanges(b *testing.B) {
	const entries = 9_999 // and one policy beside them
	for _, kind := range []string{"Idle", "Diff", "Overrides", "Policies", "File", "Delete"} {
		for _, kept := range []string{"no", "yes"} {
			b.Run(kind+"/appendonly="+kept, func(b *testing.B) {
				file := filepath.Join(b.TempDir(), "policies.yaml")
				texts := [2]string{documentOfMany(entries, 5, kind == "Policies"), documentOfMany(entries, 6, kind == "Policies")}
				flags := []string{"--transport", "auto", "--io-threads", "2", "--dir", b.TempDir(), "--appendonly", kept, "--appendfsync", "everysec"}
				if kind == "File" {
					require.NoError(b, os.WriteFile(file, []byte(texts[0]), 0o600))
					flags = append(flags, "--policy-file", file)
				}
				c, err := config.Load(flags, nil)
				require.NoError(b, err)
				l, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(b, err)
				f := startOn(b, c, l)
				admin := f.dial()
				if kind != "File" {
					admin.do("RL.POLICY", "APPLY", texts[0])
				}
				admin.set("RL.POLICY SET own LIMITS TB 1000000 1000000 1")
				var stop atomic.Bool
				var clients sync.WaitGroup
				var use, ping [2]time.Duration
				for words, longest := range map[string]*[2]time.Duration{"RL.USE own k": &use, "PING": &ping} {
					other := f.dial()
					clients.Go(func() { *longest = callUntil(&stop, other, strings.Fields(words)) })
				}
				b.ResetTimer()
				for i := range b.N {
					text := texts[(i+1)%2]
					switch kind {
					case "Idle":
						<-time.After(300 * time.Millisecond)
					case "Diff":
						require.NotContains(b, admin.do("RL.POLICY", "DIFF", text), "-ERR")
					case "Delete":
						b.StopTimer()
						admin.do("RL.POLICY", "APPLY", text+own)
						b.StartTimer()
						require.Equal(b, ":1\r\n", admin.do("RL.POLICY", "DEL", "api"))
					case "File":
						require.NoError(b, os.WriteFile(file, []byte(text), 0o600))
						require.Equal(b, fmt.Sprintf(":%d\r\n", entries+1), admin.do("RL.POLICY", "RELOAD"))
					default:
						require.NotContains(b, admin.do("RL.POLICY", "APPLY", text+own), "-")
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

// callUntil makes calls, one after the other, and returns how long the longest took, and that
// of which one in a thousand takes longer.
func callUntil(stop *atomic.Bool, c *client, words []string) (longest [2]time.Duration) {
	var all []time.Duration
	call := frame(words...)
	for !stop.Load() {
		began := time.Now()
		_ = c.SetDeadline(began.Add(patience))
		if _, err := c.Write(call); err != nil {
			return longest
		}
		if _, err := readReply(c.r); err != nil {
			return longest
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return [2]time.Duration{all[len(all)-1], all[len(all)-1-len(all)/1000]}
}
