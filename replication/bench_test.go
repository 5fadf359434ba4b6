package replication_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/transport"
)

// pumped is a peer whose connection is filled by a goroutine, as by an event loop.
type pumped struct {
	waking
	pump  transport.Pump
	wakes int64
	busy  time.Duration
	stop  chan struct{}
	done  chan struct{}
}

func (p *pumped) run() {
	defer close(p.done)
	var out []byte
	for {
		select {
		case <-p.stop:
			return
		case <-p.c:
		}
		p.wakes++
		begun := time.Now()
		for more := true; more; {
			out, more, _ = p.pump.Fill(out[:0], transport.PumpMost)
		}
		p.busy += time.Since(begun)
	}
}

// BenchmarkWrite measures what a write of the log costs the primary. A write has 10 records, like
// a batch of commands. The cases are: no replica; a replica that is woken after [linger]; and a
// replica that is woken at once because a client waits for it. There is one write each 50 µs. It
// reports the time of a write, the number of wake-ups and the time of filling, each per write.
func BenchmarkWrite(b *testing.B) {
	var piece []byte
	for range 10 {
		piece = append(piece, frameOf(1, make([]byte, 45)...)...)
	}
	for name, with := range map[string]struct{ replica, urgent bool }{
		"none": {}, "lingers": {replica: true}, "at once": {replica: true, urgent: true},
	} {
		b.Run(name, func(b *testing.B) {
			s, closeAll := realTime()
			defer closeAll()
			s.Retain(true)
			p := &pumped{waking: waking{c: make(chan struct{}, 1)}, stop: make(chan struct{}), done: make(chan struct{})}
			if with.replica {
				c := call(1, nil)
				c.Peer = p
				_, p.pump = s.PSync(c)
				go p.run()
				p.Wake()
			}
			if with.urgent {
				s.Await(1, 1<<60, &conn{})
			}
			var busy time.Duration
			for b.Loop() {
				begun := time.Now()
				s.Write(piece)
				busy += time.Since(begun)
				for time.Since(begun) < 50*time.Microsecond {
					runtime.Gosched()
				}
			}
			if with.replica {
				close(p.stop)
				<-p.done
				b.ReportMetric(float64(p.wakes)/float64(b.N), "wakes/write")
				b.ReportMetric(float64(p.busy.Nanoseconds())/float64(b.N), "ns-filling/write")
			}
			b.ReportMetric(float64(busy.Nanoseconds())/float64(b.N), "ns/write")
		})
	}
}

// realTime returns a source with the system clock.
func realTime() (s *replication.Source, closeAll func()) {
	system := clock.NewSystem(clock.Options{})
	o := options(clocktest.New(1), defaults())
	begun := time.Now()
	o.Stopwatch, o.After = func() time.Duration { return time.Since(begun) }, system.AfterFunc
	o.Keyspace = keyspace.New(keyspace.Options{Clock: system})
	s = replication.NewSource(o)
	s.Begin(replication.History{ID: id1, Offset2: -1}, 0)
	return s, func() {
		s.Close()
		o.Keyspace.Close()
	}
}

// BenchmarkAwait measures what the reply barrier costs each of many clients per round. Each
// client waits for a different position. One acknowledgement in 100 reaches the position.
func BenchmarkAwait(b *testing.B) {
	for name, waiting := range map[string]int{"100": 100, "10000": 10_000} {
		b.Run(name, func(b *testing.B) {
			s, closeAll := realTime()
			defer closeAll()
			_, pump := s.PSync(call(1, &conn{}))
			for more := true; more; {
				_, more, _ = pump.Fill(nil, transport.PumpMost)
			}
			p := &conn{}
			piece := frameOf(1, make([]byte, 45)...)
			acked, position := uint64(0), uint64(0)
			for range waiting {
				s.Write(piece)
				position += uint64(len(piece))
				s.Await(1, position, p)
			}
			n := 0
			for b.Loop() {
				s.Write(piece)
				position += uint64(len(piece))
				s.Await(1, position, p)
				if n++; n%100 == 0 {
					acked += 100 * uint64(len(piece))
					s.Acknowledge(1, says(acked))
				}
			}
		})
	}
}

// BenchmarkFill measures the cost of sending a stream to a replica that is behind.
func BenchmarkFill(b *testing.B) {
	s, closeAll := realTime()
	defer closeAll()
	_, pump := s.PSync(call(1, &conn{}))
	piece := frameOf(1, make([]byte, 60_000)...)
	var out []byte
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		s.Write(piece)
		var err error
		if out, _, err = pump.Fill(out[:0], transport.PumpMost); err != nil {
			b.Fatal(err)
		}
	}
}
