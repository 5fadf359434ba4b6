package server_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// elements brings n elements of a length under key, scored if the command is ZADD.
func (b *waitingBench) elements(command, key string, n, length int) {
	const each = 500
	for from := 0; from < n; from += each {
		args := []string{command, key}
		for i := from; i < min(from+each, n); i++ {
			if command == "ZADD" {
				args = append(args, strconv.Itoa(i))
			}
			args = append(args, fmt.Sprintf("%0*d", length, i))
		}
		b.do(frame(args...))
	}
}

// TestPopsOfMuchLeaveTheLoop: whatever takes many elements, or many bytes of them, from a
// key leaves its loop, by its words alone or because of what it finds, also while somebody
// waits for elements elsewhere. Who takes few stays.
func TestPopsOfMuchLeaveTheLoop(t *testing.T) {
	const many = 20_000
	for _, waits := range []bool{false, true} {
		b := newWaitingBench(t)
		if waits {
			waiter := b.another()
			waiter.feed(frame("BLPOP", "nobody's", "0"))
		}
		for _, step := range []struct {
			kind, call string
			length     int // of each element
			leaves     bool
		}{
			{"RPUSH", "LPOP k 20000", 6, true},
			{"RPUSH", "RPOP k 200", 10_000, true},
			{"RPUSH", "LPOP k 5", 6, false},
			{"RPUSH", "LMPOP 2 none k LEFT COUNT 20000", 6, true},
			{"RPUSH", "LMPOP 1 k RIGHT COUNT 200", 10_000, true},
			{"RPUSH", "LMPOP 1 k LEFT COUNT 5", 6, false},
			{"RPUSH", "BLMPOP 0 1 k LEFT COUNT 20000", 6, true},
			{"RPUSH", "LTRIM k 0 9", 6, true},
			{"RPUSH", "LREM k 1 none", 6, true},
			{"ZADD", "ZPOPMIN k 20000", 6, true},
			{"ZADD", "ZPOPMAX k 200", 10_000, true},
			{"ZADD", "ZMPOP 1 k MIN COUNT 20000", 6, true},
			{"ZADD", "ZMPOP 1 k MAX COUNT 200", 10_000, true},
			{"ZADD", "BZMPOP 0 1 k MIN COUNT 20000", 6, true},
			{"ZADD", "ZREMRANGEBYRANK k 0 -1", 6, true},
			{"SADD", "SPOP k 20000", 6, true},
			{"SADD", "SPOP k 200", 10_000, true},
		} {
			n := many
			if step.length > 6 {
				n = 200
			}
			b.do(frame("DEL", "k"))
			b.elements(step.kind, "k", n, step.length)
			turn := b.session.Feed(b.worker, frame(strings.Fields(step.call)...), nil)
			left := turn.Next == transport.Park || turn.Next == transport.Wait
			require.Equal(t, step.leaves, left, "%s of %d bytes, somebody waits: %t", step.call, step.length, waits)
			if left {
				require.Empty(t, turn.Out)
				<-b.peer.wake
				turn.Out = b.do(nil)
			}
			require.NotContains(t, string(turn.Out[:20]), "ERR", step.call)
			if strings.Contains(step.call, "POP") {
				fields := strings.Fields(step.call)
				took, err := strconv.Atoi(fields[len(fields)-1])
				require.NoError(t, err)
				require.Equal(t, took, strings.Count(string(turn.Out), fmt.Sprintf("$%d\r\n", step.length)), step.call)
			}
		}
		b.do(frame("DEL", "k"))
		b.elements("RPUSH", "k", many, 5)
		b.do(frame("MULTI"))
		b.do(frame("LMPOP", "1", "k", "LEFT", "COUNT", "20000"))
		require.Equal(t, transport.Park, b.session.Feed(b.worker, frame("EXEC"), nil).Next, "a transaction, too")
		<-b.peer.wake
		require.Len(t, b.do(nil), len("*1\r\n*2\r\n$1\r\nk\r\n*20000\r\n")+many*len("$5\r\n00000\r\n"))
	}
}

// TestPopThatIsTooLongTakesNothing: what would not fit into a reply stays where it is, and
// its client is told. Long elements take no room there.
func TestPopThatIsTooLongTakesNothing(t *testing.T) {
	b := newWaitingBench(t)
	const n, length = 4600, 15_000
	for command, key := range map[string]string{"RPUSH": "l", "SADD": "s", "ZADD": "z"} {
		for from := 0; from < n; from += 50 {
			args := []string{command, key}
			for i := from; i < from+50; i++ {
				if command == "ZADD" {
					args = append(args, strconv.Itoa(i))
				}
				args = append(args, fmt.Sprintf("%0*d", length, i))
			}
			b.do(frame(args...))
		}
	}
	for _, call := range []string{
		"LPOP l 4600", "RPOP l 4600", "LMPOP 1 l LEFT COUNT 4600", "BLMPOP 0 1 l LEFT COUNT 4600",
		"SPOP s 4600", "ZPOPMIN z 4600", "ZPOPMAX z 4600", "ZMPOP 1 z MIN COUNT 4600",
	} {
		require.Equal(t, "-ERR the reply is too long\r\n", string(b.do(frame(strings.Fields(call)...))), call)
	}
	for call, want := range map[string]int{"LLEN l": n, "SCARD s": n, "ZCARD z": n} {
		require.Equal(t, fmt.Sprintf(":%d\r\n", want), string(b.do(frame(strings.Fields(call)...))), call)
	}
}

// TestSpopTakesEachMemberOnce: whatever is taken together is different, and gone.
func TestSpopTakesEachMemberOnce(t *testing.T) {
	b := newWaitingBench(t)
	for _, n := range []int{30, 3000} {
		b.elements("SADD", "s", n, 5)
		seen := map[string]bool{}
		for len(seen) < n {
			reply := strings.Split(string(b.do(frame("SPOP", "s", "7"))), "\r\n")
			for i := 2; i < len(reply); i += 2 {
				require.False(t, seen[reply[i]], reply[i])
				seen[reply[i]] = true
			}
			require.Equal(t, fmt.Sprintf(":%d\r\n", n-len(seen)), string(b.do(frame("SCARD", "s"))))
		}
	}
}

// TestPopsOfManyKeysLeaveTheLoop: who waits under very many keys holds up nobody, and is
// served as any other: what there is in the order of its keys, then what comes, once.
func TestPopsOfManyKeysLeaveTheLoop(t *testing.T) {
	b := newWaitingBench(t)
	other := b.waiting()
	const n = 5000
	args := []string{"BLPOP"}
	for i := range n {
		args = append(args, "k"+strconv.Itoa(i))
	}
	call := frame(append(args, "0")...)
	wait := func() {
		turn := b.session.Feed(b.worker, call, nil)
		require.Equal(t, transport.Wait, turn.Next, "the loop is free meanwhile")
		require.Equal(t, len(call), turn.Consumed)
	}
	popped := func(key, value string) {
		t.Helper()
		<-b.peer.wake
		require.Equal(t, array(bulk(key), bulk(value)), string(b.do(nil)))
	}
	other.do(frame("RPUSH", "k4999", "z", "y"))
	other.do(frame("RPUSH", "k7", "a"))
	wait()
	popped("k7", "a")
	wait()
	popped("k4999", "z")
	wait()
	popped("k4999", "y")
	wait()
	other.do(frame("RPUSH", "k2500", "late", "later"))
	popped("k2500", "late")
	require.Equal(t, array(bulk("later")), string(other.do(frame("LRANGE", "k2500", "0", "-1"))))
	other.do(frame("SET", "k3", "x"))
	other.do(frame("DEL", "k2500"))
	wait()
	<-b.peer.wake
	require.Equal(t, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", string(b.do(nil)))
}

// TestPopsOfManyKeysThatEnd: the wait for very many keys ends with its timeout, by CLIENT
// UNBLOCK and with its client, whether it has joined the queues by then or not.
func TestPopsOfManyKeysThatEnd(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin, c := f.dial(), f.dial()
		id := c.id()
		args := []string{"BLPOP"}
		for i := range 5000 {
			args = append(args, "k"+strconv.Itoa(i))
		}
		for range 5 {
			c.command(append(args, "0")...)
			f.awaits(admin, 1)
			require.Equal(t, ":1\r\n", admin.do("CLIENT", "UNBLOCK", id))
			require.Equal(t, "*-1\r\n", c.reply())
		}
		c.command(append(args, "1.5")...)
		f.awaits(admin, 1)
		eventually(t, "its timer runs", func() bool { return f.clock.Timers() > 0 })
		f.clock.Advance(1500 * time.Millisecond)
		require.Equal(t, "*-1\r\n", c.reply())
		c.command(append(args, "0")...)
		f.awaits(admin, 1)
		require.NoError(t, c.Close())
		f.awaits(admin, 0)
		eventually(t, "nobody is in a queue", func() bool { return f.Keyspace().PopWaiting() == 0 })
		require.Equal(t, ":1\r\n", admin.do("RPUSH", "k1", "v"))
		require.Equal(t, bulk("v"), admin.do("LPOP", "k1"), "nobody has taken it")
	})
}
