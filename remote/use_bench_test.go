package remote_test

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/remote/adapter"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// peer is the other end of a session without a socket.
type peer struct{}

func (peer) Wake()                {}
func (peer) Abort()               {}
func (peer) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (peer) LocalAddr() net.Addr         { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
func (peer) Held() (input, output int64) { return 0, 0 }

// direct is a session of a server whose engine answers before a call returns.
type direct struct {
	session transport.Session
	worker  transport.Worker
	out     []byte
}

// openDirect opens a session under the policies a, b and c, each with the clause TB, and three with the clauses of three
// families.
func openDirect(tb testing.TB) *direct {
	policies := registry.New(registry.Options{Shared: true})
	d := &document.Document{}
	for _, name := range []string{"a", "b", "c"} {
		d.Policies = append(d.Policies, document.Policy{Name: name, Limits: []string{"TB 1000000 1000000 1"}})
	}
	d.Policies = append(d.Policies, document.Policy{
		Name: "three", Limits: []string{"SW 1000000 60", "TB 1000000 1000000 1", "TB 2000000 1000000 1"},
	})
	store := remote.NewAtOnce()
	_, err := policies.Overlay(d, store.Now(), policy.Bounds{LogMaxEntries: 1000, MaxMembers: 1000})
	require.NoError(tb, err)
	table, err := commands.NewStoreTable(nil)
	require.NoError(tb, err)
	stores := adapter.New(store, func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop })
	started := time.Now()
	engine := session.NewEngine(env.Options{
		NewStore: stores.NewStore, Remote: store, Policies: policies,
		Stopwatch: func() time.Duration { return time.Since(started) },
	}, table)
	s := &direct{worker: engine.NewWorker()}
	s.session, _ = engine.Open(peer{})
	require.NotNil(tb, s.session)
	return s
}

// packet sends in and returns the replies, which are valid until the next call.
func (s *direct) packet(in []byte) []byte {
	turn := s.session.Feed(s.worker, in, s.out[:0])
	s.out = turn.Whole()
	return s.out
}

// pipeline returns a packet of calls, in which %d is the number of the call, from first on.
func pipeline(first int, words ...string) []byte {
	var in bytes.Buffer
	for i := first; i < first+pipelined; i++ {
		fmt.Fprintf(&in, "*%d\r\n", len(words))
		for _, w := range words {
			if bytes.Contains([]byte(w), []byte("%d")) {
				w = fmt.Sprintf(w, i)
			}
			fmt.Fprintf(&in, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	return in.Bytes()
}

// calls are the calls that are compared.
var calls = []struct {
	name  string
	words []string
	// more is the number of allocations of a call beyond those of TB.ACQUIRE, at most.
	more float64
}{
	{"tb.acquire", []string{"TB.ACQUIRE", "a:k%d", "1000000", "1000000", "1"}, 0},
	{"use", []string{"RL.USE", "a", "k%d"}, 0},
	{"use-three", []string{"RL.USE", "three", "k%d"}, 0},
	{"multi", []string{"RL.MULTI", "2", "x%d", "y%d", "TB", "1000000", "1000000", "1", "TB", "1000000", "1000000", "1"}, 56},
	{"and", []string{"RL.USE", "a", "k%d", "AND", "b", "k%d"}, 48},
	{"any", []string{"RL.USE", "a", "k%d", "ANY", "b", "k%d"}, 48},
}

// pipelined is the number of calls of a packet.
const pipelined = 32

// BenchmarkUse compares calls of RL.USE with TB.ACQUIRE and RL.MULTI, in pipelines of 32 over 3,200 keys, on a server whose
// engine answers at once: what the engine and its connections take is not part of it. The calls take turns, and the
// fastest time of each packet counts: a packet takes less than a tenth of a millisecond, so that other programs on the
// machine change the result little.
func BenchmarkUse(b *testing.B) {
	const turn = 100
	s := openDirect(b)
	packets := make([][][]byte, len(calls))
	fastest := make([][turn]time.Duration, len(calls))
	for i, c := range calls {
		for n := range turn {
			fastest[i][n] = time.Hour
			packets[i] = append(packets[i], pipeline(n*pipelined, c.words...))
			require.Equal(b, byte('*'), s.packet(packets[i][n])[0])
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range packets {
			for n, packet := range packets[i] {
				began := time.Now()
				s.packet(packet)
				fastest[i][n] = min(fastest[i][n], time.Since(began))
			}
		}
	}
	sums := make([]float64, len(calls))
	for i, c := range calls {
		for _, d := range fastest[i] {
			sums[i] += float64(d)
		}
		b.ReportMetric(sums[i]/turn/pipelined, c.name+"-ns")
		allocs := testing.AllocsPerRun(100, func() { s.packet(packets[i][0]) })
		b.ReportMetric(allocs/pipelined, c.name+"-allocs")
	}
	b.ReportMetric(sums[1]/sums[0], "ratio")
}

// TestUseAllocatesLikeALimiter: a call of RL.USE over a store allocates as much as one of TB.ACQUIRE, and one under several
// policies less than RL.MULTI.
func TestUseAllocatesLikeALimiter(t *testing.T) {
	effort.Alone(t)
	s := openDirect(t)
	var base float64
	for i, c := range calls {
		packet := pipeline(0, c.words...)
		require.Equal(t, byte('*'), s.packet(packet)[0])
		n := testing.AllocsPerRun(200, func() { s.packet(packet) }) / pipelined
		if i == 0 {
			base = n
		}
		require.LessOrEqual(t, n, base+c.more+0.1, c.name)
	}
}
