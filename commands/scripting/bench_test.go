package scripting_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cellserver/cellserver/internal/inproc"
)

// BenchmarkScript measures pipelines of 32 scripts over 100,000 keys, from input bytes to output
// bytes. One operation is one script. Pass passes its arguments to a command, as applications do,
// Set is the script that Redis is measured with, and Loop does with a loop what Four does without
// one.
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
			s := inproc.OpenTimed(b)
			sha := strings.Split(s.Do("SCRIPT", "LOAD", script.source), "\r\n")[1]
			packets := make([][]byte, 3125)
			for i := range packets {
				for j := range depth {
					words := append([]string{"EVALSHA", sha, "1", fmt.Sprintf("user:%012d", i*depth+j)}, script.args...)
					packets[i] = append(packets[i], inproc.Encode(nil, words...)...)
				}
				s.Packet(packets[i])
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%depth == 0 {
					s.Packet(packets[n/depth%len(packets)])
				}
				n++
			}
		})
	}
}
