package scripting_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cellserver/cellserver/internal/inproc"
)

// BenchmarkScript measures a pipeline of 32 scripts over 100,000 keys from bytes in to
// bytes out; one operation is one script. Pass is the pass-through that applications
// have, Set what Redis is measured with, and Loop does with a loop what Four does without.
func BenchmarkScript(b *testing.B) {
	for name, script := range map[string]struct {
		source string
		args   []string
	}{
		"Pass": {"return redis.call('cl.throttle',KEYS[1],ARGV[1],ARGV[2],ARGV[3],ARGV[4])", []string{"15", "30", "60", "1"}},
		"Four": {"local s = redis.call('set',KEYS[1],ARGV[1]) s = redis.call('set',KEYS[1],ARGV[1]) s = redis.call('set',KEYS[1],ARGV[1]) return redis.call('set',KEYS[1],ARGV[1])", []string{"v"}},
		"Loop": {"local s for i = 1, 4 do s = redis.call('set',KEYS[1],ARGV[1]) end return s", []string{"v"}},
		"Set":  {"return redis.call('set',KEYS[1],ARGV[1])", []string{"v"}},
	} {
		b.Run(name, func(b *testing.B) {
			const depth = 32
			s := newBench(b)
			reply := string(s.feed(inproc.Encode(nil, "SCRIPT", "LOAD", script.source)))
			sha := strings.Split(reply, "\r\n")[1]
			packets := make([][]byte, 3125)
			for i := range packets {
				for j := range depth {
					words := append([]string{"EVALSHA", sha, "1", fmt.Sprintf("user:%012d", i*depth+j)}, script.args...)
					packets[i] = append(packets[i], inproc.Encode(nil, words...)...)
				}
				s.feed(packets[i])
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%depth == 0 {
					s.feed(packets[n/depth%len(packets)])
				}
				n++
			}
		})
	}
}

// BenchmarkMulti compares ten calls in a transaction, sent as one packet, with the ten
// alone; one operation is ten calls.
func BenchmarkMulti(b *testing.B) {
	for _, name := range []string{"Plain", "Transaction"} {
		b.Run(name, func(b *testing.B) {
			const calls = 10
			s := newBench(b)
			packets := make([][]byte, 10000)
			for i := range packets {
				for j := range calls {
					packets[i] = append(packets[i], inproc.Encode(nil, "CL.THROTTLE", fmt.Sprintf("user:%012d", i*calls+j), "15", "30", "60", "1")...)
				}
				if name == "Transaction" {
					packets[i] = append(append(inproc.Encode(nil, "MULTI"), packets[i]...), inproc.Encode(nil, "EXEC")...)
				}
				s.feed(packets[i])
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				s.feed(packets[n%len(packets)])
				n++
			}
		})
	}
}
