package server_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// quietPeer is the transport's end of a connection that nobody listens to.
type quietPeer struct{}

func (quietPeer) Wake()                 {}
func (quietPeer) Abort()                {}
func (quietPeer) Held() (in, out int64) { return 0, 0 }
func (quietPeer) RemoteAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (quietPeer) LocalAddr() net.Addr   { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

// bench is a session of an in-process server without sockets.
type bench struct {
	engine  *session.Engine
	session transport.Session
	worker  transport.Worker
	out     []byte
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, l.Close()) })
	s, err := server.New(config.Default(), server.Options{Listeners: []net.Listener{l}})
	require.NoError(tb, err)
	return (&bench{engine: s.Engine()}).another()
}

// another opens a further session of the same server.
func (b *bench) another() *bench {
	session, _ := b.engine.Open(quietPeer{})
	return &bench{engine: b.engine, session: session, worker: b.engine.NewWorker(), out: make([]byte, 0, 1<<16)}
}

// feed runs a packet and returns the replies.
func (b *bench) feed(packet []byte) []byte {
	turn := b.session.Feed(b.worker, packet, b.out[:0])
	b.out = turn.Out
	return turn.Whole()
}

// frame encodes a command as clients send it.
func frame(args ...string) []byte {
	f := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		f = fmt.Appendf(f, "$%d\r\n%s\r\n", len(a), a)
	}
	return f
}

var hotCommands = map[string][]string{
	"PING":       {"PING"},
	"GET":        {"GET", "cell"},
	"GETString":  {"GET", "string"},
	"SET":        {"SET", "string", "a value of some length"},
	"SETEX":      {"SET", "ending", "value", "EX", "60"},
	"INCR":       {"INCR", "count"},
	"HSET":       {"HSET", "hash", "tokens", "17"},
	"HGET":       {"HGET", "hash", "tokens"},
	"ZADD":       {"ZADD", "sorted", "1700000000000", "request"},
	"ZREMRANGE":  {"ZREMRANGEBYSCORE", "sorted", "0", "1600000000000"},
	"ZCARD":      {"ZCARD", "sorted"},
	"ZCOUNT":     {"ZCOUNT", "sorted", "(1600000000000", "+inf"},
	"CLThrottle": {"CL.THROTTLE", "cell", "15", "30", "60", "1"},
	"SWCounter":  {"SW.ALLOW", "counter", "1000000", "60", "1"},
	"SWFixed":    {"SW.ALLOW", "fixed", "1000000", "60", "1", "FIXED"},
	"TBGreedy":   {"TB.ACQUIRE", "greedy", "100", "1000000", "1", "1"},
	"TBInterval": {"TB.ACQUIRE", "interval", "100", "1000", "1", "1", "INTERVAL"},
	"RLMulti":    {"RL.MULTI", "2", "second", "day", "TB", "100", "1000000", "1", "SW", "1000000", "86400", "FIXED"},
	"CCAcquire":  {"CC.ACQUIRE", "lease", "10", "60", "member"},
	"TBLeaky":    {"TB.ACQUIRE", "leaky", "100", "1000000", "1", "1", "LEAKY"},
}

// TestHotPathsAllocateNothing holds every fast command to 0 allocations from bytes
// in to bytes out.
func TestHotPathsAllocateNothing(t *testing.T) {
	b := newBench(t)
	b.feed(frame("CL.THROTTLE", "cell", "15", "30", "60", "1"))
	b.feed(frame("SET", "string", "a value of some length"))
	for name, args := range hotCommands {
		packet := frame(args...)
		require.NotEqual(t, byte('-'), b.feed(packet)[0], "%s: %s", name, b.out)
		require.Zero(t, testing.AllocsPerRun(1000, func() { b.feed(packet) }), name)
	}
}

// TestRestrictedUsersAllocateNothing is the same for a user with patterns of each kind, and
// for a call with selectors.
func TestRestrictedUsersAllocateNothing(t *testing.T) {
	for _, rules := range [][]string{
		{"+@all", "~*"},
		{"+@all", "%R~c?ll", "~[a-z]*", "~second", "~day"},
		{"-@all", "(+@all", "~x*)", "(+@all", "~*)"},
	} {
		b := newBench(t)
		_, _, err := b.engine.Users.Set("app", append([]string{"on", "nopass"}, rules...))
		require.NoError(t, err)
		b.feed(frame("AUTH", "app", "x"))
		b.feed(frame("CL.THROTTLE", "cell", "15", "30", "60", "1"))
		b.feed(frame("SET", "string", "a value of some length"))
		for name, args := range hotCommands {
			packet := frame(args...)
			require.NotEqual(t, byte('-'), b.feed(packet)[0], "%s: %s", name, b.out)
			require.Zero(t, testing.AllocsPerRun(1000, func() { b.feed(packet) }), "%s %s", name, rules)
		}
	}
}

// BenchmarkUsers measures CL.THROTTLE as BenchmarkFeed does, for users with more and less to
// compare. They take turns, since a busy machine is not as fast at one time as at another, and
// of each the fastest turn is reported; one operation is a turn of all of them.
func BenchmarkUsers(b *testing.B) {
	users := []struct {
		name, rules string
		*bench
		fastest time.Duration
	}{
		{name: "none"},
		{name: "unrestricted", rules: "+@all ~* &*"},
		{name: "prefix", rules: "+@all ~user:*"},
		{name: "command", rules: "+cl.throttle ~user:*"},
		{name: "tenPrefixes", rules: "+@all ~a:* ~b:* ~c:* ~d:* ~e:* ~f:* ~g:* ~h:* ~i:* ~user:*"},
		{name: "glob", rules: "+@all ~*er:*"},
		{name: "selectors", rules: "-@all (+get ~*) (+cl.throttle ~user:*)"},
	}
	const depth, turn = 32, 25
	packets := make([][]byte, 1000)
	for i := range packets {
		for j := range depth {
			packets[i] = append(packets[i], frame("CL.THROTTLE", fmt.Sprintf("user:%012d", i*depth+j), "15", "30", "60", "1")...)
		}
	}
	all := newBench(b)
	for i := range users {
		u := &users[i]
		u.bench, u.fastest = all.another(), time.Hour
		u.worker = all.worker // so that they differ in nothing else
		if u.rules == "" {
			continue
		}
		_, _, err := u.engine.Users.Set(u.name, append([]string{"on", "nopass"}, strings.Fields(u.rules)...))
		require.NoError(b, err)
		require.Equal(b, okReply, string(u.feed(frame("AUTH", u.name, "x"))))
	}
	for n := 0; b.Loop(); n++ {
		for i := range users {
			u := &users[i]
			began := time.Now()
			for k := range turn {
				u.feed(packets[(n*turn+k)%len(packets)])
			}
			u.fastest = min(u.fastest, time.Since(began))
			require.Equal(b, byte('*'), u.out[0])
		}
	}
	for i := range users {
		b.ReportMetric(float64(users[i].fastest)/turn/depth, users[i].name+"-ns")
	}
}

// TestTransactionsAllocateNothing is the same for a transaction.
func TestTransactionsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector has pools lose some of what they are given")
	}
	b := newBench(t)
	calls := bytes.Join([][]byte{frame("MULTI"), frame("CL.THROTTLE", "cell", "15", "30", "60", "1"), frame("EXEC")}, nil)
	require.NotContains(t, string(b.feed(calls)), "ERR")
	require.Zero(t, testing.AllocsPerRun(1000, func() { b.feed(calls) }))
}

// BenchmarkFeed measures a pipeline of 32 equal commands over 100,000 keys from
// bytes in to bytes out; one operation is one command.
func BenchmarkFeed(b *testing.B) {
	for name, args := range hotCommands {
		b.Run(name, func(b *testing.B) {
			const depth = 32
			s := newBench(b)
			packets := make([][]byte, 3125)
			for i := range packets {
				for j := range depth {
					a := append([]string(nil), args...)
					key := fmt.Sprintf("user:%012d", i*depth+j)
					switch {
					case name == "RLMulti":
						a[2], a[3] = key, "d"+key
					case len(a) > 1:
						a[1] = key
					}
					packets[i] = append(packets[i], frame(a...)...)
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

// BenchmarkTransaction measures ten CL.THROTTLE in one packet, with MULTI and EXEC
// around them and without; one operation is the packet.
func BenchmarkTransaction(b *testing.B) {
	for _, kind := range []string{"MultiOfTen", "TenPlain"} {
		b.Run(kind, func(b *testing.B) {
			s := newBench(b)
			packets := make([][]byte, 1000)
			for i := range packets {
				var p []byte
				for j := range 10 {
					p = append(p, frame("CL.THROTTLE", fmt.Sprintf("user:%06d", i*10+j), "15", "30", "60")...)
				}
				if kind == "MultiOfTen" {
					p = append(append(frame("MULTI"), p...), frame("EXEC")...)
				}
				require.Equal(b, 0, bytes.Count(s.feed(p), []byte("-ERR")))
				packets[i] = p
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				s.feed(packets[n%len(packets)])
			}
		})
	}
}
