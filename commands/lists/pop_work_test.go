package lists_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

// elements adds n elements of a length to key, with scores if the command is ZADD.
func elements(b *inproc.Fed, command, key string, n, length int) {
	const each = 500
	for from := 0; from < n; from += each {
		args := []string{command, key}
		for i := from; i < min(from+each, n); i++ {
			if command == "ZADD" {
				args = append(args, strconv.Itoa(i))
			}
			args = append(args, fmt.Sprintf("%0*d", length, i))
		}
		b.Do(args...)
	}
}

// TestPopsOfMuchLeaveTheLoop: a pop of many elements, or of many bytes, leaves its loop, because
// of its arguments or of the elements that it finds, also while a client waits for elements
// elsewhere. A pop of few elements stays on the loop.
func TestPopsOfMuchLeaveTheLoop(t *testing.T) {
	const many = 20_000
	for _, waits := range []bool{false, true} {
		b := inproc.Open(t)
		if waits {
			turn := b.Another().Turn(inproc.Encode(nil, "BLPOP", "nobody's", "0"), nil)
			require.Equal(t, transport.Wait, turn.Next)
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
			b.Do("DEL", "k")
			elements(b, step.kind, "k", n, step.length)
			turn := b.Turn(inproc.Encode(nil, strings.Fields(step.call)...), nil)
			left := turn.Next == transport.Park || turn.Next == transport.Wait
			require.Equal(t, step.leaves, left, "%s of %d bytes, somebody waits: %t", step.call, step.length, waits)
			if left {
				require.Empty(t, turn.Out)
				b.Woken()
				turn.Out = b.Packet(nil)
			}
			require.NotContains(t, string(turn.Out[:20]), "ERR", step.call)
			if strings.Contains(step.call, "POP") {
				fields := strings.Fields(step.call)
				took, err := strconv.Atoi(fields[len(fields)-1])
				require.NoError(t, err)
				require.Equal(t, took, strings.Count(string(turn.Out), fmt.Sprintf("$%d\r\n", step.length)), step.call)
			}
		}
		b.Do("DEL", "k")
		elements(b, "RPUSH", "k", many, 5)
		b.Do("MULTI")
		b.Do("LMPOP", "1", "k", "LEFT", "COUNT", "20000")
		require.Equal(t, transport.Park, b.Turn(inproc.Encode(nil, "EXEC"), nil).Next, "a transaction, too")
		b.Woken()
		require.Len(t, b.Packet(nil), len("*1\r\n*2\r\n$1\r\nk\r\n*20000\r\n")+many*len("$5\r\n00000\r\n"))
	}
}

// TestPopThatIsTooLongTakesNothing: elements that would not fit into a reply stay in the list,
// and the client gets an error. Long elements do not count, because replies refer to them.
func TestPopThatIsTooLongTakesNothing(t *testing.T) {
	effort.Alone(t)
	b := inproc.Open(t)
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
			b.Do(args...)
		}
	}
	for _, call := range []string{
		"LPOP l 4600", "RPOP l 4600", "LMPOP 1 l LEFT COUNT 4600", "BLMPOP 0 1 l LEFT COUNT 4600",
		"SPOP s 4600", "ZPOPMIN z 4600", "ZPOPMAX z 4600", "ZMPOP 1 z MIN COUNT 4600",
	} {
		require.Equal(t, "-ERR the reply is too long\r\n", b.Do(strings.Fields(call)...), call)
	}
	for call, want := range map[string]int{"LLEN l": n, "SCARD s": n, "ZCARD z": n} {
		require.Equal(t, fmt.Sprintf(":%d\r\n", want), b.Do(strings.Fields(call)...), call)
	}
}

// TestPopsOfManyKeysLeaveTheLoop: a client that waits under very many keys delays no other
// client, and is served like any other: existing elements in the order of its keys, and later
// ones once.
func TestPopsOfManyKeysLeaveTheLoop(t *testing.T) {
	b := inproc.Open(t)
	other := b.Another()
	const n = 5000
	args := []string{"BLPOP"}
	for i := range n {
		args = append(args, "k"+strconv.Itoa(i))
	}
	call := inproc.Encode(nil, append(args, "0")...)
	wait := func() {
		turn := b.Turn(call, nil)
		require.Equal(t, transport.Wait, turn.Next, "the loop is free meanwhile")
		require.Equal(t, len(call), turn.Consumed)
	}
	popped := func(key, value string) {
		t.Helper()
		b.Woken()
		require.Equal(t, inproc.Array(inproc.Bulk(key), inproc.Bulk(value)), string(b.Packet(nil)))
	}
	other.Do("RPUSH", "k4999", "z", "y")
	other.Do("RPUSH", "k7", "a")
	wait()
	popped("k7", "a")
	wait()
	popped("k4999", "z")
	wait()
	popped("k4999", "y")
	wait()
	other.Do("RPUSH", "k2500", "late", "later")
	popped("k2500", "late")
	require.Equal(t, inproc.Array(inproc.Bulk("later")), other.Do("LRANGE", "k2500", "0", "-1"))
	other.Do("SET", "k3", "x")
	other.Do("DEL", "k2500")
	wait()
	b.Woken()
	require.Equal(t, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", string(b.Packet(nil)))
}
