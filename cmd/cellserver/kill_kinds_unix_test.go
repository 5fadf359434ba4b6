//go:build real && unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// act is a group of commands that are sent at once and take effect completely or not at all.
type act [][]string

// encode appends the commands of an act as a client sends them.
func (a act) encode(dst []byte) []byte {
	for _, words := range a {
		dst = fmt.Appendf(dst, "*%d\r\n", len(words))
		for _, w := range words {
			dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	return dst
}

// wire is one connection of a client that uses a database of its own.
type wire struct {
	c net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, socket string, db int) *wire {
	c, err := net.Dial("unix", socket)
	require.NoError(t, err)
	w := &wire{c, bufio.NewReader(c)}
	_, err = ask(w.r, c, fmt.Sprint("SELECT ", db))
	require.NoError(t, err)
	return w
}

// do sends acts at once and returns the replies to those that were answered completely.
func (w *wire) do(acts ...act) (answers []string, err error) {
	var b []byte
	for _, a := range acts {
		b = a.encode(b)
	}
	if _, err = w.c.Write(b); err != nil {
		return nil, err
	}
	for _, a := range acts {
		var all []string
		for range a {
			got, err := reply(w.r)
			if err != nil {
				return answers, err
			}
			all = append(all, got)
		}
		answers = append(answers, strings.Join(all, " | "))
	}
	return answers, nil
}

// expired is a time after which keys with a TTL of one millisecond have expired.
const expired = 5 * time.Millisecond

// each sends the commands of an act one by one, so that the server cannot look ahead.
func (w *wire) each(a act) (answer string, err error) {
	var all []string
	for _, words := range a {
		got, err := w.do(act{words})
		if err != nil {
			return "", err
		}
		all = append(all, got...)
	}
	return strings.Join(all, " | "), nil
}

// far is the expiry of keys that should outlive the test, in seconds.
const far = 4_000_000_000

// clumsy generates commands for a few keys of every kind.
type clumsy struct{ *rand.Rand }

func (c clumsy) key(kinds string) string {
	return fmt.Sprintf("%c%d", kinds[c.IntN(len(kinds))], c.IntN(3))
}

func (c clumsy) word() string {
	return strings.Repeat(fmt.Sprint(c.IntN(300)), 1+c.IntN(4)*c.IntN(3))
}

// words returns some words after first, sometimes so many that a collection becomes large.
func (c clumsy) words(each int, first ...string) []string {
	n := 1 + c.IntN(3)
	if c.IntN(12) == 0 {
		n = 200
	}
	for range n * each {
		first = append(first, c.word())
	}
	return first
}

func (c clumsy) scored(first ...string) []string {
	for range 1 + c.IntN(3) + c.IntN(2)*c.IntN(2)*150 {
		first = append(first, fmt.Sprint(c.IntN(50)), c.word())
	}
	return first
}

// command returns a command whose effect does not depend on the server.
func (c clumsy) command() []string {
	s, h, l, e, z := c.key("s"), c.key("h"), c.key("l"), c.key("e"), c.key("z")
	n := fmt.Sprint(c.IntN(40) - 10)
	makers := []func() []string{
		func() []string { return []string{"SET", c.key("shlez"), c.word()} },
		func() []string { return []string{"SET", s, c.word(), "EXAT", fmt.Sprint(far + c.IntN(9))} },
		func() []string { return []string{"SET", s, strings.Repeat("x", c.IntN(3000)), "KEEPTTL"} },
		func() []string { return []string{"APPEND", s, c.word()} },
		func() []string { return []string{"INCRBY", s, n} },
		func() []string { return []string{"SETRANGE", s, fmt.Sprint(c.IntN(50)), c.word()} },
		func() []string { return []string{"GETDEL", s} },
		func() []string { return []string{"MSET", s, c.word(), c.key("shlez"), c.word()} },
		func() []string { return c.words(2, "HSET", h) },
		func() []string { return c.words(1, "HDEL", h) },
		func() []string { return []string{"HINCRBY", h, c.word(), n} },
		func() []string { return c.words(1, "RPUSH", l) },
		func() []string { return c.words(1, "LPUSH", l) },
		func() []string { return []string{"LPOP", l, fmt.Sprint(1 + c.IntN(30))} },
		func() []string { return []string{"RPOP", l} },
		func() []string { return []string{"LSET", l, n, c.word()} },
		func() []string { return []string{"LREM", l, n, c.word()} },
		func() []string { return []string{"LTRIM", l, fmt.Sprint(c.IntN(5)), fmt.Sprint(c.IntN(150) - 5)} },
		func() []string { return []string{"LINSERT", l, "BEFORE", c.word(), c.word()} },
		func() []string { return []string{"LMOVE", l, c.key("l"), "LEFT", "RIGHT"} },
		func() []string { return c.words(1, "SADD", e) },
		func() []string { return c.words(1, "SREM", e) },
		func() []string { return []string{"SMOVE", e, c.key("e"), c.word()} },
		func() []string { return c.scored("ZADD", z) },
		func() []string { return []string{"ZINCRBY", z, n, c.word()} },
		func() []string { return c.words(1, "ZREM", z) },
		func() []string { return []string{"ZPOPMIN", z, fmt.Sprint(c.IntN(30))} },
		func() []string { return []string{"RENAME", c.key("shlez"), c.key("shlez")} },
		func() []string { return []string{"DEL", c.key("shlez"), c.key("shlez")} },
		func() []string { return []string{"EXPIREAT", c.key("shlez"), fmt.Sprint(far + c.IntN(9))} },
		func() []string { return []string{"PERSIST", c.key("shlez")} },
		func() []string { return []string{"CL.THROTTLE", c.key("t"), fmt.Sprint(burst), "1", "1000"} },
		func() []string { return c.script() },
	}
	if c.IntN(200) == 0 {
		return []string{"FLUSHDB"}
	}
	return makers[c.IntN(len(makers))]()
}

// script returns a script that changes several keys: one without a loop, or one with a loop over
// computed keys, which runs exclusively.
func (c clumsy) script() []string {
	if c.IntN(2) == 0 {
		return []string{
			"EVAL", "redis.pcall('HSET', KEYS[1], ARGV[1], ARGV[2]) redis.pcall('RPUSH', KEYS[2], ARGV[1]) return redis.pcall('INCRBY', KEYS[3], 3)", "3",
			c.key("h"), c.key("l"), c.key("s"), c.word(), c.word(),
		}
	}
	return []string{
		"EVAL", "for i = 1, tonumber(ARGV[1]) do redis.pcall('SADD', 'e' .. i % 3, i) redis.pcall('ZADD', 'z' .. i % 3, i, ARGV[2] .. i) end return 1", "0",
		fmt.Sprint(c.IntN(60)), c.word(),
	}
}

// act returns a command, or a transaction of several.
func (c clumsy) act() act {
	if c.IntN(6) > 0 {
		return act{c.command()}
	}
	a := act{{"MULTI"}}
	for range 1 + c.IntN(5) {
		a = append(a, c.command())
	}
	return append(a, []string{"EXEC"})
}

// contents returns a description of the whole content of a database.
func (w *wire) contents(t *testing.T) string {
	var all []string
	one := func(words ...string) string {
		got, err := w.do(act{words})
		require.NoError(t, err)
		return got[0]
	}
	keys := strings.Fields(one("KEYS", "*"))
	sort.Strings(keys)
	for _, k := range keys {
		kind, value := one("TYPE", k), ""
		switch {
		case k[0] == 't':
			value = strings.Fields(one("CL.THROTTLE", k, fmt.Sprint(burst), "1", "1000", "0"))[2]
			all = append(all, k+" "+value)
			continue
		case kind == "string":
			value = one("GET", k)
		case kind == "hash":
			fields := strings.Fields(one("HGETALL", k))
			var pairs []string
			for i := 0; i < len(fields); i += 2 {
				pairs = append(pairs, fields[i]+"="+fields[i+1])
			}
			sort.Strings(pairs)
			value = strings.Join(pairs, " ")
		case kind == "list":
			value = one("LRANGE", k, "0", "-1")
		case kind == "set":
			members := strings.Fields(one("SMEMBERS", k))
			sort.Strings(members)
			value = strings.Join(members, " ")
		case kind == "zset":
			value = one("ZRANGE", k, "0", "-1", "WITHSCORES")
		}
		all = append(all, fmt.Sprintf("%s %s %s: %s", k, kind, one("EXPIRETIME", k), value))
	}
	return strings.Join(all, "\n")
}

// rival is one client, with the replies that it got and the calls whose outcome it does not know.
type rival struct {
	db      int
	made    clumsy
	model   *wire // to a server that lives
	unknown []act
	acked   int
}

// check compares the content of the restarted server with the model, which may lack a prefix of the
// unanswered calls.
func (r *rival) check(t *testing.T, socket string) {
	w := dial(t, socket, r.db)
	defer w.c.Close()
	got := w.contents(t)
	want := r.model.contents(t)
	behind := want
	for _, a := range r.unknown {
		if got == behind {
			break
		}
		_, err := r.model.do(a)
		require.NoError(t, err)
		<-time.After(expired)
		behind = r.model.contents(t)
	}
	if got != behind {
		require.Equal(t, want, got, "database %d, unanswered: %q", r.db, r.unknown)
	}
	r.unknown = nil
}

// run sends acts until the server is gone, and sends the same to the model.
func (r *rival) run(w *wire) error {
	defer w.c.Close()
	for {
		var acts []act
		for range 1 + r.made.IntN(2)*r.made.IntN(12) {
			acts = append(acts, r.made.act())
		}
		if r.made.IntN(20) == 0 {
			acts = []act{{{"PEXPIRE", r.made.key("shlez"), "1"}}}
		}
		got, err := w.do(acts...)
		for i := range got {
			want, broken := r.model.each(acts[i])
			if broken != nil {
				return broken
			}
			if got[i] != want && !bytes.Contains(acts[i].encode(nil), []byte("CL.THROTTLE")) {
				return fmt.Errorf("database %d, %q: %s instead of %s", r.db, acts[i], got[i], want)
			}
		}
		r.acked += len(got)
		if err != nil {
			r.unknown = acts[len(got):]
			return nil
		}
		if acts[0][0][0] == "PEXPIRE" {
			<-time.After(expired)
		}
	}
}

// TestKilledServersLoseNoKind: killed at any moment, under either policy, while snapshots are
// written, the program has after a restart all acknowledged effects of every kind: strings, small
// and large collections, transactions, scripts, and keys that were created again after their
// expiry. A server that is not killed, and that gets one command at a time, serves as the model.
func TestKilledServersLoseNoKind(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it needs Unix sockets and signals")
	}
	rounds := 26
	if testing.Short() {
		rounds = 4
	}
	model := launch(t, t.TempDir(), nil, "--appendfsync", "no")
	var rivals []*rival
	for db := range 8 {
		r := &rival{db: db, made: clumsy{rand.New(rand.NewPCG(uint64(db), 7))}, model: dial(t, model.socket, db)}
		defer r.model.c.Close()
		rivals = append(rivals, r)
	}
	dir := t.TempDir()
	for round := range rounds {
		p := launch(t, dir, nil, "--appendfsync", []string{"everysec", "always"}[round%2], "--save", "1 1", "--auto-aof-rewrite-min-size", "100000")
		for _, r := range rivals {
			r.check(t, p.socket)
		}
		var busy sync.WaitGroup
		var wrong atomic.Pointer[error]
		for _, r := range rivals {
			w := dial(t, p.socket, r.db)
			busy.Go(func() {
				if err := r.run(w); err != nil {
					wrong.Store(&err)
				}
			})
		}
		moment := time.Duration(30+53*round%400) * time.Millisecond
		<-time.After(moment / 2)
		if round%3 > 0 {
			w := dial(t, p.socket, 0)
			_, err := w.do(act{{"BGREWRITEAOF"}})
			require.NoError(t, err)
			_ = w.c.Close() // it has replied
		}
		<-time.After(moment / 2) // a different moment in each round
		p.kill()
		busy.Wait()
		if err := wrong.Load(); err != nil {
			require.NoError(t, *err, "round %d", round)
		}
	}
	total := 0
	p := launch(t, dir, nil)
	for _, r := range rivals {
		r.check(t, p.socket)
		total += r.acked
		require.Positive(t, r.acked)
	}
	t.Logf("%d kills, %d acknowledged commands and transactions, 0 lost", rounds, total)
}
