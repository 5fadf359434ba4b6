package commands_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/cellserver/cellserver/internal/inproc"
)

// longCommands returns commands with as many arguments as fit, with the number of keys or
// elements of each.
func longCommands() map[string]longCommand {
	words := func(name string, n int, each func(i int) []string) longCommand {
		args := []string{name}
		for i := range n {
			args = append(args, each(i)...)
		}
		return longCommand{n, inproc.Encode(nil, args...)}
	}
	key := func(prefix string) func(i int) []string {
		return func(i int) []string { return []string{prefix + strconv.Itoa(i)} }
	}
	const n, clauses = 30_000, 16_000
	multi := []string{"RL.MULTI", strconv.Itoa(clauses)}
	for i := range clauses {
		multi = append(multi, "r"+strconv.Itoa(i))
	}
	for range clauses {
		multi = append(multi, "SW", "1000000", "60")
	}
	return map[string]longCommand{
		"MSET":    words("MSET", n, func(i int) []string { return []string{"k" + strconv.Itoa(i), "v"} }),
		"MGET":    words("MGET", n, key("k")),
		"EXISTS":  words("EXISTS", n, key("k")),
		"DEL":     words("DEL", n, key("absent")),
		"RLMULTI": {clauses, inproc.Encode(nil, multi...)},
	}
}

type longCommand struct {
	n      int // keys
	packet []byte
}

// BenchmarkLongCommand compares the time for a key of a long command with that for the same key
// in a pipeline of short ones.
func BenchmarkLongCommand(b *testing.B) {
	s := inproc.OpenTimed(b)
	for name, c := range longCommands() {
		b.Run(name, func(b *testing.B) {
			s.Packet(c.packet)
			b.ResetTimer()
			for range b.N {
				s.Packet(c.packet)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.n), "ns/key")
		})
	}
	var pipeline []byte
	for i := range 1000 {
		pipeline = append(pipeline, inproc.Encode(nil, "SET", fmt.Sprint("k", i*30), "v")...)
	}
	b.Run("ShortSET", func(b *testing.B) {
		for range b.N {
			s.Packet(pipeline)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1000), "ns/key")
	})
}
