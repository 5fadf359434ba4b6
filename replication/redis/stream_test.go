package redis_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/rdb"
	"github.com/cellserver/cellserver/replication/redis"
)

// start is the time that the clocks of these tests show.
const start limit.Instant = 1_700_000_000_000_000_000

func newKeyspace(t testing.TB) *keyspace.Keyspace {
	t.Helper()
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(start)})
	t.Cleanup(ks.Close)
	return ks
}

// heard is a Runner that records the commands.
type heard struct {
	lines []string
	// fails are commands that fail.
	fails string
}

func (h *heard) Run(db int, args [][]byte) error {
	line := fmt.Sprintf("%d:%s", db, bytes.Join(args, []byte(" ")))
	h.lines = append(h.lines, line)
	if h.fails != "" && strings.Contains(line, h.fails) {
		return errors.New("ERR")
	}
	return nil
}

func stream(lines ...string) []byte {
	var b []byte
	for _, l := range lines {
		b = inproc.Encode(b, strings.Fields(l)...)
	}
	return b
}

// restore makes a key with some value, which a command can modify.
func restore(t *testing.T, ks *keyspace.Keyspace, db int, key string, expiry limit.Instant) {
	t.Helper()
	require.NoError(t, ks.Restore(db, []byte(key), entry.Entry{Kind: entry.String, Expiry: expiry, Value: []byte("v")}))
}

func TestTranslate(t *testing.T) {
	for name, c := range map[string]struct {
		in      []string
		fails   string
		ran     []string
		dirty   []string
		skipped map[string]int64
		err     error
	}{
		"absolute":           {in: []string{"SELECT 2", "SET a 1 PXAT 1800000000000", "DEL a b"}, ran: []string{"2:SET a 1 PXAT 1800000000000", "2:DEL a b"}},
		"conditions":         {in: []string{"SET a 1 NX GET PXAT 1800000000000", "SETNX a 1", "MSETNX a 1", "RENAMENX a b", "HSETNX h f v", "LPUSHX l v"}, ran: []string{"0:SET a 1 PXAT 1800000000000", "0:SET a 1", "0:MSET a 1", "0:RENAME a b", "0:HSET h f v", "0:LPUSH l v"}},
		"relative":           {in: []string{"SET a 1 EX 10", "EXPIRE b 10", "SETEX c 10 v", "GETEX d PX 10"}, dirty: []string{"a", "b", "c", "d"}},
		"limiter":            {in: []string{"CL.THROTTLE a 1 2 3", "CL.THROTTLE a 1 2 3", "INCR a", "SET a 1", "RENAME a b", "SET c 1"}, ran: []string{"0:SET c 1"}, dirty: []string{"a", "b"}},
		"other database":     {in: []string{"CL.THROTTLE a 1 2 3", "SELECT 1", "INCR a"}, ran: []string{"1:INCR a"}, dirty: []string{"a"}},
		"prolonged":          {in: []string{"PERSIST x", "PEXPIREAT y 1800000000000"}, dirty: []string{"x", "y"}},
		"absent":             {in: []string{"INCR x", "HSET y f v", "RPOPLPUSH l z", "SET v 1 KEEPTTL", "RENAME w a", "SET u 1"}, ran: []string{"0:SET u 1"}, dirty: []string{"x", "y", "l", "z", "v", "w", "a"}},
		"ending":             {in: []string{"INCR ends", "MULTI", "APPEND ending v", "PEXPIREAT ending 1800000000000", "EXEC"}, ran: []string{"0:INCR ends"}, dirty: []string{"ending"}},
		"replaced":           {in: []string{"SET a 1 KEEPTTL", "GETSET x v", "GETDEL y", "RENAME a z"}, ran: []string{"0:SET a 1 KEEPTTL", "0:GETSET x v", "0:GETDEL y", "0:RENAME a z"}},
		"not here":           {in: []string{"COPY a b DB 3", "LINSERT l BEFORE a b", "SORT a STORE d", "BITOP AND x y z"}, dirty: []string{"a", "b", "b", "l", "a", "d", "x"}[:0]},
		"conditions of ends": {in: []string{"PEXPIREAT a 1800000000000 GT", "EXPIREAT b 1800000000 NX"}, ran: []string{"0:PEXPIREAT a 1800000000000", "0:EXPIREAT b 1800000000"}},
		"numbers of keys":    {in: []string{"EVAL s 2 x y z", "EVALSHA s 1 z", "MSETEX 2 v 1 w 2 EX 3", "PFCOUNT a b", "EVAL s 9 u", "EVALSHA s x k", "EVAL s"}, dirty: []string{"x", "y", "z", "v", "w", "a", "u"}, skipped: map[string]int64{"EVALSHA": 1, "EVAL": 1}},
		"unknown":            {in: []string{"XADD s * a b", "FOO", "xadd"}, skipped: map[string]int64{"XADD": 1, "FOO": 1, "xadd": 1}},
		"ignored":            {in: []string{"PING", "PUBLISH a b", "REPLCONF GETACK *"}},
		"failed":             {in: []string{"RENAME a b"}, fails: "RENAME", ran: []string{"0:RENAME a b"}, dirty: []string{"a", "b"}},
		"transaction":        {in: []string{"MULTI", "INCR a", "CL.THROTTLE b 1 2 3", "SET b 1", "EXEC", "INCR b"}, ran: []string{"0:MULTI", "0:INCR a", "0:EXEC"}, dirty: []string{"b"}},
		"only limiters":      {in: []string{"MULTI", "CL.THROTTLE b 1 2 3", "EXEC"}, dirty: []string{"b"}},
		"failed transaction": {in: []string{"MULTI", "INCR a", "EXEC"}, fails: "EXEC", ran: []string{"0:MULTI", "0:INCR a", "0:EXEC"}, dirty: []string{"a"}},
		"cut transaction":    {in: []string{"MULTI", "INCR a"}, ran: []string{"0:MULTI", "0:INCR a", "0:DISCARD"}},
		"flush":              {in: []string{"FLUSHDB ASYNC", "SELECT 1", "FLUSHALL"}, ran: []string{"0:FLUSHDB", "1:FLUSHALL"}},
		"flush of all":       {in: []string{"SELECT 99", "MULTI", "FLUSHALL", "EXEC"}, ran: []string{"15:MULTI", "15:FLUSHALL", "15:EXEC"}},
		"failed flush":       {in: []string{"FLUSHDB"}, fails: "FLUSH", ran: []string{"0:FLUSHDB"}, err: redis.ErrResync},
		"swap":               {in: []string{"SWAPDB 0 1"}, err: redis.ErrResync},
		"beyond":             {in: []string{"SELECT 16", "SET a 1", "FLUSHDB"}, skipped: map[string]int64{"in a database beyond 15": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			ks, r := newKeyspace(t), &heard{fails: c.fails}
			for _, key := range []string{"a", "b", "h", "l"} {
				restore(t, ks, 0, key, entry.NoExpiry)
			}
			restore(t, ks, 1, "a", entry.NoExpiry)
			restore(t, ks, 0, "ends", start.Add(2*time.Second))
			restore(t, ks, 0, "ending", start.Add(time.Second/2))
			in := stream(c.in...)
			got, err := redis.ApplyStream(bufio.NewReader(bytes.NewReader(in)), ks, r, 1000)
			want := c.err
			if want == nil {
				want = io.EOF
			}
			require.ErrorIs(t, err, want)
			require.Equal(t, c.ran, r.lines)
			if c.dirty == nil || len(c.dirty) > 0 {
				require.Equal(t, c.dirty, got.Dirty)
			}
			if c.skipped != nil {
				require.Equal(t, c.skipped, got.Skipped)
			}
			require.Equal(t, name == "ignored", got.Asked)
			if c.err == nil && name != "cut transaction" {
				require.EqualValues(t, 1000+len(in), got.Position)
			}
		})
	}
}

// TestPositionIsThatOfWholeCommands: an offset counts every byte. After a link is cut, the next
// one begins before the transaction.
func TestPositionIsThatOfWholeCommands(t *testing.T) {
	in := append([]byte("\n\r\nPING\r\n"), stream("SET a 1", "MULTI", "SET b 1", "EXEC")...)
	begun := len(in) - len(stream("MULTI", "SET b 1", "EXEC"))
	for cut := range len(in) + 1 {
		r := &heard{}
		got, err := redis.ApplyStream(bufio.NewReader(bytes.NewReader(in[:cut])), newKeyspace(t), r, 0)
		require.Error(t, err)
		require.LessOrEqual(t, got.Position, int64(cut))
		switch {
		case cut == len(in):
			require.EqualValues(t, cut, got.Position)
			require.Equal(t, []string{"0:SET a 1", "0:MULTI", "0:SET b 1", "0:EXEC"}, r.lines)
		case cut >= begun:
			require.EqualValues(t, begun, got.Position)
		}
	}
}

// forged are streams that announce more bytes than they have, or are invalid.
func forged() map[string]string {
	return map[string]string{
		"arguments":         "*16777216\r\n$1\r\na\r\n",
		"too many":          "*16777217\r\n",
		"length":            "*2\r\n$3\r\nSET\r\n$1073741824\r\nabc",
		"too long":          "*1\r\n$1073741825\r\n",
		"together too long": "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1073741823\r\n",
		"negative":          "*-1\r\n",
		"negative length":   "*1\r\n$-1\r\n",
		"no end":            "*1\r\n$1\r\nabc",
		"no number":         "*x\r\n",
		"long number":       "*00000000000000000001\r\n",
		"no bulk":           "*1\r\n:1\r\n",
		"long line":         strings.Repeat("a", 1<<20),
		"exec alone":        "EXEC\r\n",
		"select nothing":    "SELECT\r\n",
		"select much":       "SELECT 99999999999999999999\r\n",
		"empty array":       "*0\r\n*0\r\n",
		"empty word":        "*1\r\n$0\r\n\r\n",
	}
}

// TestRoundIsOverWhenNothingIsThere: a round ends when there is nothing to read, however many
// commands arrive at once, and whether or not the last one is complete.
func TestRoundIsOverWhenNothingIsThere(t *testing.T) {
	h := &heard{}
	all := stream("SET a 1", "SET b 1", "SET c 1")
	in := io.MultiReader(bytes.NewReader(all[:len(all)-3]), bytes.NewReader(all[len(all)-3:]))
	err := redis.ApplyStreamInRounds(bufio.NewReader(in), newKeyspace(t), h, func() { h.lines = append(h.lines, "round") })
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"round", "0:SET a 1", "0:SET b 1", "round", "0:SET c 1", "round", "round"}, h.lines)
}

// allowed returns how much memory may be allocated for n bytes of a peer.
func allowed(n int) uint64 { return 64*uint64(n) + 1<<20 }

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestForgedStreams(t *testing.T) {
	ks := newKeyspace(t)
	for name, in := range forged() {
		t.Run(name, func(t *testing.T) {
			r := bufio.NewReader(strings.NewReader(in))
			used := allocated(func() {
				_, err := redis.ApplyStream(r, ks, &heard{}, 0)
				require.Error(t, err)
			})
			require.LessOrEqual(t, used, allowed(len(in)))
		})
	}
}

func FuzzStream(f *testing.F) {
	for _, in := range forged() {
		if len(in) < 1000 {
			f.Add([]byte(in))
		}
	}
	f.Add(stream("SELECT 1", "MULTI", "SET a 1 PXAT 18", "CL.THROTTLE a 1 2 3", "FLUSHALL", "EXEC", "COPY a b DB 2", "SORT a STORE b", "BITOP", "DEL"))
	ks := newKeyspace(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bufio.NewReader(bytes.NewReader(in))
		used := allocated(func() {
			got, err := redis.ApplyStream(r, ks, &heard{}, 0)
			require.Error(t, err)
			require.LessOrEqual(t, got.Position, int64(len(in)))
			require.LessOrEqual(t, got.Stored, got.Position)
		})
		require.LessOrEqual(t, used, allowed(len(in)))
	})
}

// copyOf returns an RDB with everything that is handed over.
func copyOf(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := rdb.NewWriter(&b)
	seq := func(words ...string) func(func([]byte) bool) {
		return func(yield func([]byte) bool) {
			for _, word := range words {
				if !yield([]byte(word)) {
					return
				}
			}
		}
	}
	require.NoError(t, w.Header())
	require.NoError(t, w.SelectDB(0))
	require.NoError(t, w.String([]byte("plain"), []byte("abc"), 0))
	require.NoError(t, w.String([]byte("tat"), []byte("1700000003000000000"), 1700000002500))
	require.NoError(t, w.String([]byte("short"), []byte("1700000009000000000"), 1700000001000))
	require.NoError(t, w.String([]byte("past"), []byte("1600000000000000000"), 1700000001000))
	require.NoError(t, w.String([]byte("forever"), []byte("1700000003000000000"), 0))
	require.NoError(t, w.String([]byte("zero"), []byte("01700000003000000000"), 1700000003000))
	require.NoError(t, w.String([]byte("over"), []byte("x"), 1600000000000))
	require.NoError(t, w.List([]byte("list"), 0, 3, seq("a", "b", "a")))
	require.NoError(t, w.Set([]byte("set"), 0, 2, seq("a", "a")))
	require.NoError(t, w.SortedSet([]byte("z"), 0, 2, func(yield func([]byte, float64) bool) { _ = yield([]byte("b"), 2) && yield([]byte("a"), 1) }))
	require.NoError(t, w.Hash([]byte("h"), 1700000001000, 1, func(yield func([]byte, []byte) bool) { yield([]byte("f"), []byte("v")) }))
	require.NoError(t, w.String(bytes.Repeat([]byte("k"), 16<<10+1), nil, 0))
	require.NoError(t, w.SelectDB(16))
	require.NoError(t, w.String([]byte("beyond"), nil, 0))
	require.NoError(t, w.End())
	return b.Bytes()
}

func TestLoadDecidesLikeImport(t *testing.T) {
	body := copyOf(t)
	mark := strings.Repeat("m", 40)
	for name, in := range map[string]string{
		"size":       fmt.Sprintf("\n\n$%d\r\n%s", len(body), body),
		"end marked": fmt.Sprintf("\n$EOF:%s\r\n%s%s", mark, body, mark),
	} {
		t.Run(name, func(t *testing.T) {
			ks := newKeyspace(t)
			r := bufio.NewReader(strings.NewReader(in + "*1\r\n"))
			skipped, err := redis.LoadRDB(r, ks)
			require.NoError(t, err)
			rest, _ := io.ReadAll(r)
			require.Equal(t, "*1\r\n", string(rest), "nothing is taken of what follows")
			require.Equal(t, map[string]int64{"in a database beyond 15": 1, "a key of more than 16384 bytes": 1}, skipped)
			v := ks.NewHandle()
			defer v.Close()
			for key, want := range map[string]entry.Entry{
				"plain":   {Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("abc")},
				"tat":     {Kind: entry.Cell, Expiry: start + 3e9},
				"past":    {Kind: entry.String, Expiry: start + 1e9, Value: []byte("1600000000000000000")},
				"forever": {Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("1700000003000000000")},
				"zero":    {Kind: entry.String, Expiry: start + 3e9, Value: []byte("01700000003000000000")},
			} {
				got, _ := v.Load(0, []byte(key))
				if len(got.Value) == 0 {
					got.Value = nil
				}
				require.Equal(t, want, got, key)
			}
			got, _ := v.Load(0, []byte("short"))
			require.Equal(t, []any{entry.Cell, start + 1e9, start + 9e9}, []any{got.Kind, got.Expiry, entry.CellTAT(&got)})
			require.False(t, v.Exists(0, []byte("over")))
			for key, kind := range map[string]entry.Kind{"list": entry.List, "set": entry.Set, "z": entry.SortedSet, "h": entry.Hash} {
				require.Equal(t, kind, v.Kind(0, []byte(key)))
			}
		})
	}
}

func TestForgedTransfers(t *testing.T) {
	body := string(copyOf(t))
	mark := strings.Repeat("m", 40)
	for name, in := range map[string]string{
		"other size":  fmt.Sprintf("$%d\r\n%s", len(body)+1, body),
		"other mark":  "$EOF:" + mark + "\r\n" + body + strings.Repeat("n", 40),
		"short mark":  "$EOF:" + mark[1:] + "\r\n" + body + mark[1:],
		"cut":         "$EOF:" + mark + "\r\n" + body + mark[1:],
		"error":       "-ERR no\r\n",
		"no size":     "$x\r\n",
		"negative":    "$-5\r\n",
		"nothing":     "",
		"other bytes": "+OK\r\n",
		"checksum":    fmt.Sprintf("$%d\r\n%s\x01", len(body), body[:len(body)-1]),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := redis.LoadRDB(bufio.NewReader(strings.NewReader(in)), newKeyspace(t))
			require.Error(t, err)
		})
	}
}

func FuzzLoad(f *testing.F) {
	body := copyOf(f)
	f.Add(fmt.Appendf(nil, "$%d\r\n%s", len(body), body))
	f.Add([]byte("$9\r\nREDIS0009\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	ks := newKeyspace(f)
	f.Fuzz(func(_ *testing.T, in []byte) {
		_, _ = redis.LoadRDB(bufio.NewReader(bytes.NewReader(in)), ks)
	})
}

// followed follows a primary that sends an RDB with auxiliary fields, and then a stream.
func followed(t *testing.T, sent []byte, fields ...rdb.Aux) (ran []string, err error) {
	t.Helper()
	var b bytes.Buffer
	w := rdb.NewWriter(&b)
	require.NoError(t, w.Header(fields...))
	require.NoError(t, w.End())
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	h := &heard{}
	nothing := func() error { return nil }
	f := redis.New(redis.Options{
		Keyspace: newKeyspace(t), Runner: h, Begin: nothing, Whole: nothing, Log: slog.New(slog.DiscardHandler),
	})
	in := bufio.NewReader(bytes.NewReader(fmt.Appendf(nil, "$%d\r\n%s%s", b.Len(), b.Bytes(), sent)))
	err = f.Follow(t.Context(), ours, in, "+FULLRESYNC "+strings.Repeat("a", 40)+" 7")
	return h.lines, err
}

// TestStreamGoesOnInTheDatabaseThatTheRDBNames: a primary that is itself a replica does not
// select the database again.
func TestStreamGoesOnInTheDatabaseThatTheRDBNames(t *testing.T) {
	sent := stream("SET a 1", "SELECT 2", "SET b 1")
	for name, c := range map[string]struct {
		fields []rdb.Aux
		ran    []string
	}{
		"nothing":  {nil, []string{"0:SET a 1", "2:SET b 1"}},
		"database": {[]rdb.Aux{{Name: "redis-ver", Value: "7.0.0"}, {Name: "repl-stream-db", Value: "3"}, {Name: "repl-id", Value: "5"}}, []string{"3:SET a 1", "2:SET b 1"}},
		"last":     {[]rdb.Aux{{Name: "repl-stream-db", Value: "15"}}, []string{"15:SET a 1", "2:SET b 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			ran, err := followed(t, sent, c.fields...)
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, c.ran, ran)
		})
	}
	for _, db := range []string{"16", "-1", "", "x", "3x", "+3", "99999999999999999999", strings.Repeat("1", 1<<20)} {
		ran, err := followed(t, sent, rdb.Aux{Name: "repl-stream-db", Value: db})
		require.ErrorContains(t, err, "repl-stream-db", "%.30q", db)
		require.Less(t, len(err.Error()), 500)
		require.Empty(t, ran)
	}
}

// TestCopyBeginsWithItsFirstKey: the old keys are removed when the first key arrives, and not if
// there is no key or no RDB.
func TestCopyBeginsWithItsFirstKey(t *testing.T) {
	body := copyOf(t)
	stays := errors.New("stays")
	reply := func(id string) string { return "+FULLRESYNC " + strings.Repeat(id, 40) + " 0" }
	for name, c := range map[string]struct {
		rdb   string
		begun bool
		empty []bool
		err   error
	}{
		"keys":      {rdb: string(body), begun: true, err: io.EOF},
		"one byte":  {rdb: string(body[:len(body)-1]), begun: true, err: io.ErrUnexpectedEOF},
		"no key":    {rdb: "REDIS0009\xff\x00\x00\x00\x00\x00\x00\x00\x00", empty: []bool{false, false}, err: stays},
		"functions": {rdb: "REDIS0010\xf5\x01f\xff\x00\x00\x00\x00\x00\x00\x00\x00", empty: []bool{false, false}, err: stays},
		"a stream":  {rdb: "REDIS0009\x0f\x01k\x00\x00\x00\x00\x00\xff\x00\x00\x00\x00\x00\x00\x00\x00", begun: true, err: io.EOF},
		"no header": {rdb: "REDIS9999", err: rdb.ErrVersion},
	} {
		t.Run(name, func(t *testing.T) {
			begun, empty := false, []bool(nil)
			f := redis.New(redis.Options{
				Keyspace: newKeyspace(t), Runner: &heard{}, Log: slog.New(slog.DiscardHandler),
				Begin: func() error { begun = true; return nil },
				Whole: func() error { return nil },
				Empty: func(related bool) error { empty = append(empty, related); return stays },
			})
			for range 2 {
				ours, theirs := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				in := bufio.NewReader(strings.NewReader(fmt.Sprintf("$%d\r\n%s", len(c.rdb), c.rdb)))
				require.ErrorIs(t, f.Follow(t.Context(), ours, in, reply("a")), c.err)
				require.NoError(t, theirs.Close())
			}
			require.Equal(t, c.begun, begun)
			require.Equal(t, c.empty, empty)
		})
	}
}
