package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// hotCommands has a call of each command that must be fast.
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

// TestHotPathsAllocateNothing: no fast command allocates anything from input bytes to output
// bytes.
func TestHotPathsAllocateNothing(t *testing.T) {
	b := inproc.OpenTimed(t)
	b.Packet(inproc.Encode(nil, "CL.THROTTLE", "cell", "15", "30", "60", "1"))
	b.Packet(inproc.Encode(nil, "SET", "string", "a value of some length"))
	for name, args := range hotCommands {
		packet := inproc.Encode(nil, args...)
		reply := b.Packet(packet)
		require.NotEqual(t, byte('-'), reply[0], "%s: %s", name, reply)
		require.Zero(t, testing.AllocsPerRun(1000, func() { b.Packet(packet) }), name)
	}
}

// TestRestrictedUsersAllocateNothing is the same test for a user with patterns of each kind, and
// for a call with selectors.
func TestRestrictedUsersAllocateNothing(t *testing.T) {
	for _, rules := range [][]string{
		{"+@all", "~*"},
		{"+@all", "%R~c?ll", "~[a-z]*", "~second", "~day"},
		{"-@all", "(+@all", "~x*)", "(+@all", "~*)"},
	} {
		b := inproc.OpenTimed(t)
		_, _, err := b.Server().Engine().Users.Set("app", append([]string{"on", "nopass"}, rules...))
		require.NoError(t, err)
		b.Packet(inproc.Encode(nil, "AUTH", "app", "x"))
		b.Packet(inproc.Encode(nil, "CL.THROTTLE", "cell", "15", "30", "60", "1"))
		b.Packet(inproc.Encode(nil, "SET", "string", "a value of some length"))
		for name, args := range hotCommands {
			packet := inproc.Encode(nil, args...)
			reply := b.Packet(packet)
			require.NotEqual(t, byte('-'), reply[0], "%s: %s", name, reply)
			require.Zero(t, testing.AllocsPerRun(1000, func() { b.Packet(packet) }), "%s %s", name, rules)
		}
	}
}

// BenchmarkUsers measures CL.THROTTLE like BenchmarkFeed, for users with few and many rules. The
// users take turns, since the speed of a busy machine varies, and the fastest turn of each is
// reported. One operation is a turn of all of them.
func BenchmarkUsers(b *testing.B) {
	users := []struct {
		name, rules string
		*inproc.Fed
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
			packets[i] = append(packets[i], inproc.Encode(nil, "CL.THROTTLE", fmt.Sprintf("user:%012d", i*depth+j), "15", "30", "60", "1")...)
		}
	}
	all := inproc.OpenTimed(b)
	for i := range users {
		u := &users[i]
		u.Fed, u.fastest = all.Beside(), time.Hour // so that they differ only in their users
		if u.rules == "" {
			continue
		}
		_, _, err := all.Server().Engine().Users.Set(u.name, append([]string{"on", "nopass"}, strings.Fields(u.rules)...))
		require.NoError(b, err)
		require.Equal(b, inproc.OK, u.Do("AUTH", u.name, "x"))
	}
	for n := 0; b.Loop(); n++ {
		for i := range users {
			u := &users[i]
			began := time.Now()
			var reply []byte
			for k := range turn {
				reply = u.Packet(packets[(n*turn+k)%len(packets)])
			}
			u.fastest = min(u.fastest, time.Since(began))
			require.Equal(b, byte('*'), reply[0])
		}
	}
	for i := range users {
		b.ReportMetric(float64(users[i].fastest)/turn/depth, users[i].name+"-ns")
	}
}

// BenchmarkFeed measures a pipeline of 32 equal commands over 100,000 keys, from input bytes to
// output bytes. One operation is one command.
func BenchmarkFeed(b *testing.B) {
	for name, args := range hotCommands {
		b.Run(name, func(b *testing.B) {
			const depth = 32
			s := inproc.OpenTimed(b)
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
					packets[i] = append(packets[i], inproc.Encode(nil, a...)...)
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

// BenchmarkFeedID measures TB.ACQUIRE as BenchmarkFeed does, without ID, and with a new token for each
// call. A key remembers four calls.
func BenchmarkFeedID(b *testing.B) {
	for _, identified := range []bool{false, true} {
		b.Run(fmt.Sprintf("id=%v", identified), func(b *testing.B) {
			const depth, token = 32, "0192f5c2-7d6e-7b3a-9c51-000000000000"
			s := inproc.OpenTimed(b)
			s.Packet(inproc.Encode(nil, "CONFIG", "SET", "id-max-per-key", "4"))
			packets := make([][]byte, 3125)
			at := make([][]int, len(packets)) // where the tokens of a packet end
			for i := range packets {
				for j := range depth {
					args := []string{"TB.ACQUIRE", fmt.Sprintf("user:%012d", i*depth+j), "100", "100", "60"}
					if identified {
						args = append(args, "ID", token)
					}
					packets[i] = append(packets[i], inproc.Encode(nil, args...)...)
					at[i] = append(at[i], len(packets[i])-len("\r\n"))
				}
			}
			send := func(n int) {
				i := n / depth % len(packets)
				if identified {
					for j, end := range at[i] {
						for k, rest := end-1, n+j; rest > 0; k, rest = k-1, rest/10 {
							packets[i][k] = byte('0' + rest%10)
						}
					}
				}
				s.Packet(packets[i])
			}
			n := 0
			for ; n < 4*depth*len(packets); n += depth {
				send(n)
			}
			b.ReportAllocs()
			for b.Loop() {
				if n%depth == 0 {
					send(n)
				}
				n++
			}
		})
	}
}
