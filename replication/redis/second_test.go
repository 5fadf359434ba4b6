package redis_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/replication/redis"
)

// replies is a connection whose replies are all there from the beginning.
type replies struct {
	net.Conn
	in   *bytes.Reader
	sent bytes.Buffer
}

func (r *replies) Read(b []byte) (int, error)  { return r.in.Read(b) }
func (r *replies) Write(b []byte) (int, error) { return r.sent.Write(b) }

// dumpOf returns the reply of DUMP for a string.
func dumpOf(text string) string {
	b := append([]byte{0, byte(len(text))}, text...)
	b = binary.LittleEndian.AppendUint16(b, 10)
	b = append(b, "checksum"...)
	return fmt.Sprintf("$%d\r\n%s\r\n", len(b), b)
}

const role = "*3\r\n$6\r\nmaster\r\n:4711\r\n*1\r\n*3\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n$2\r\n10\r\n"

func TestReadKeysOfAPrimary(t *testing.T) {
	queued := func(n int) string { return "+OK\r\n" + strings.Repeat("+QUEUED\r\n", n) }
	for name, c := range map[string]struct {
		in     string
		sent   string
		expiry int64
	}{
		"with expire times": {
			in:   ":-2\r\n" + queued(5) + "*5\r\n" + role + dumpOf("abc") + ":1700000002000\r\n$-1\r\n:-2\r\n",
			sent: "PEXPIRETIME", expiry: 2e9,
		},
		"with times to live": {
			in:   "-ERR unknown command 'PEXPIRETIME'\r\n" + queued(6) + "*6\r\n" + role + "*2\r\n$10\r\n1700000001\r\n$6\r\n500000\r\n" + dumpOf("abc") + ":250\r\n$-1\r\n:-2\r\n",
			sent: "TIME", expiry: 175e7,
		},
		"of a replica": {
			in:   ":-2\r\n" + queued(5) + "*5\r\n*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:6379\r\n$9\r\nconnected\r\n:4711\r\n" + dumpOf("abc") + ":1700000002000\r\n$-1\r\n:-2\r\n",
			sent: "ROLE", expiry: 2e9,
		},
		"of a node of a cluster": {
			in: ":-2\r\n" + queued(5) + "-CROSSSLOT Keys in request don't hash to the same slot\r\n" +
				queued(3) + "*3\r\n" + role + dumpOf("abc") + ":1700000002000\r\n" + queued(3) + "*3\r\n" + role + "$-1\r\n:-2\r\n",
			sent: "EXEC", expiry: 2e9,
		},
		"one that cannot be read": {
			in:   ":-2\r\n" + queued(5) + "*5\r\n" + role + dumpOf("abc") + ":1700000002000\r\n-ERR no\r\n:-2\r\n",
			sent: "EXEC", expiry: 2e9,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ks := newKeyspace(t)
			conn := &replies{in: bytes.NewReader([]byte(c.in))}
			at, err := redis.ReadKeys(conn, ks, "a", "b")
			require.NoError(t, err)
			require.EqualValues(t, 4711, at)
			require.Contains(t, conn.sent.String(), "\r\n"+c.sent+"\r\n")
			v := ks.NewHandle()
			defer v.Close()
			got, _ := v.Load(0, []byte("a"))
			require.EqualValues(t, int64(start)+c.expiry, got.Expiry)
			require.Equal(t, []any{entry.String, "abc"}, []any{got.Kind, string(got.Value)})
			require.False(t, v.Exists(0, []byte("b")))
		})
	}
}

// forgedReplies are invalid replies to MULTI ROLE DUMP PEXPIRETIME EXEC.
func forgedReplies() map[string]string {
	head := ":-2\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
	return map[string]string{
		"nothing":        "",
		"refused":        "-NOPERM this user has no permissions\r\n",
		"not queued":     ":-2\r\n+OK\r\n-NOPERM\r\n+QUEUED\r\n+QUEUED\r\n-EXECABORT\r\n",
		"other number":   head + "*4\r\n",
		"null":           head + "*-1\r\n",
		"no offset":      head + "*3\r\n*1\r\n$6\r\nmaster\r\n",
		"no number":      head + "*3\r\n*3\r\n$6\r\nmaster\r\n:x\r\n",
		"deep":           head + "*3\r\n" + strings.Repeat("*1\r\n", 100),
		"long array":     head + "*3\r\n*16777216\r\n",
		"length":         head + "*3\r\n" + role + "$2147483647\r\nabc",
		"too long":       head + "*3\r\n" + role + "$2147483648\r\nabc",
		"short value":    head + "*3\r\n" + role + "$3\r\nabc\r\n:-1\r\n",
		"other version":  head + "*3\r\n" + role + strings.Replace(dumpOf("abc"), "\x0a\x00", "\xff\x00", 1) + ":-1\r\n",
		"unknown type":   head + "*3\r\n" + role + strings.Replace(dumpOf("abc"), "\x00\x03abc", "\x40\x03abc", 1) + ":-1\r\n",
		"not an integer": head + "*3\r\n" + role + dumpOf("abc") + "+OK\r\n",
	}
}

func TestForgedReplies(t *testing.T) {
	ks := newKeyspace(t)
	for name, in := range forgedReplies() {
		t.Run(name, func(t *testing.T) {
			conn := &replies{in: bytes.NewReader([]byte(in))}
			used := allocated(func() {
				_, err := redis.ReadKeys(conn, ks, "a")
				require.Error(t, err)
			})
			require.LessOrEqual(t, used, allowed(len(in)))
		})
	}
}

func FuzzReplies(f *testing.F) {
	for _, in := range forgedReplies() {
		f.Add([]byte(in))
	}
	f.Add([]byte(":-2\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n" + role + dumpOf("abc") + ":1700000002000\r\n"))
	ks := newKeyspace(f)
	f.Fuzz(func(_ *testing.T, in []byte) {
		_, _ = redis.ReadKeys(&replies{in: bytes.NewReader(in)}, ks, "a")
	})
}
