package server_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/cellserver/cellserver/transport"
)

// longCommands are commands with as many arguments as fit, and how many keys or
// elements each has.
func longCommands() map[string]longCommand {
	words := func(name string, n int, each func(i int) []string) longCommand {
		args := []string{name}
		for i := range n {
			args = append(args, each(i)...)
		}
		return longCommand{n, frame(args...)}
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
		"RLMULTI": {clauses, frame(multi...)},
	}
}

type longCommand struct {
	n      int // keys
	packet []byte
}

// BenchmarkLongCommand shows what a key of a long command takes, beside what a
// pipeline of short ones takes for the same.
func BenchmarkLongCommand(b *testing.B) {
	s := newWaitingBench(b)
	for name, c := range longCommands() {
		b.Run(name, func(b *testing.B) {
			s.do(c.packet)
			b.ResetTimer()
			for range b.N {
				s.do(c.packet)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.n), "ns/key")
		})
	}
	var pipeline []byte
	for i := range 1000 {
		pipeline = append(pipeline, frame("SET", fmt.Sprint("k", i*30), "v")...)
	}
	b.Run("ShortSET", func(b *testing.B) {
		for range b.N {
			s.do(pipeline)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1000), "ns/key")
	})
}

// waitingBench is a bench whose commands may leave the loop.
type waitingBench struct {
	*bench
	peer *wakingPeer
}

// wakingPeer lets the goroutine that feeds a session wait until it is to go on.
type wakingPeer struct {
	quietPeer
	wake chan struct{} // holds one
}

func (p *wakingPeer) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func newWaitingBench(tb testing.TB) *waitingBench {
	tb.Helper()
	return newBench(tb).waiting()
}

// waiting opens a further session of the same server, whose commands may leave the
// loop.
func (b *bench) waiting() *waitingBench {
	p := &wakingPeer{wake: make(chan struct{}, 1)}
	session, _ := b.engine.Open(p)
	return &waitingBench{&bench{engine: b.engine, session: session, worker: b.engine.NewWorker(), out: make([]byte, 0, 1<<16)}, p}
}

// do runs a packet to its end and returns the replies.
func (b *waitingBench) do(packet []byte) []byte {
	out := b.out[:0]
	for {
		turn := b.session.Feed(b.worker, packet, out)
		packet, out = packet[turn.Consumed:], turn.Out
		switch turn.Next {
		case transport.Again:
		case transport.Park, transport.Wait:
			<-b.peer.wake
		default:
			b.out = out
			return out
		}
	}
}
