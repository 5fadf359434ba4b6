package remote

import (
	"bufio"
	"bytes"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/adapter"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// single is an engine of one node, which writes all keys at once.
type single struct{ *machine }

func (single) Slot([]byte) int { return 0 }

func (s single) SwapAll(ws []Write, done func(applied bool, now [][]byte, err error)) {
	s.request(0, func() reply {
		applied, now := s.swapAll(ws)
		return reply{applied: applied, raws: now}
	}, func(r reply) { done(r.applied, r.raws, r.err) })
}

// client is a client of a server whose limits are in an engine.
type client struct {
	*server
	engine  *session.Engine
	session transport.Session
	worker  transport.Worker
}

func (*client) Wake()                {}
func (*client) Abort()               {}
func (*client) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (*client) LocalAddr() net.Addr         { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
func (*client) Held() (input, output int64) { return 0, 0 }

func connect(t testing.TB, table *command.Table) *client {
	m, p := newCloud(1).join(network{}), &silent{}
	c := &client{server: &server{newStore(single{m}, m, p, bounds()), m, p}}
	stores := adapter.New(c.Store, c.machine.AfterFunc)
	c.engine = session.NewEngine(env.Options{NewStore: stores.NewStore, Remote: c.Store, Stopwatch: c.Elapsed}, table)
	c.worker = c.engine.NewWorker()
	c.session, _ = c.engine.Open(c)
	require.NotNil(t, c.session)
	return c
}

// do runs one command.
func (c *client) do(t testing.TB, words []string) script.Value {
	in := []byte("*" + strconv.Itoa(len(words)) + "\r\n")
	for _, w := range words {
		in = append(in, "$"+strconv.Itoa(len(w))+"\r\n"+w+"\r\n"...)
	}
	var out []byte
	for range 1000 {
		turn := c.session.Feed(c.worker, in, nil)
		in, out = in[turn.Consumed:], append(out, turn.Whole()...)
		if len(in) == 0 && len(out) > 0 && turn.Next != transport.Again {
			break
		}
		c.runFor(0)
	}
	v, err := script.ReadValue(bufio.NewReader(bytes.NewReader(out)))
	require.NoError(t, err, "%q: %q", words, out)
	return v
}

// set sets the clock to an instant.
func (c *client) set(t testing.TB, at string) {
	n, err := strconv.ParseInt(at, 10, 64)
	require.NoError(t, err)
	c.offset = limit.Instant(n).Sub(c.civil())
}

// TestOraclesOverAnEngine plays recordings of redis-cell, and of exact models of the other
// limiters, on a server whose limits are in an engine. A scenario ends at a call that such a server
// does not support.
func TestOraclesOverAnEngine(t *testing.T) {
	effort.Alone(t)
	table, err := commands.NewStoreTable(nil)
	require.NoError(t, err)
	files, err := filepath.Glob("../compat_test/testdata/oracle/*.jsonl*")
	require.NoError(t, err)
	more, err := filepath.Glob("../compat_test/testdata/oracle/limiters/*.gz")
	require.NoError(t, err)
	files = append(files, more...)
	require.Len(t, files, 12)
	played, left := 0, 0
	for _, file := range files {
		var c *client
		all, err := script.ReadRecorded(file)
		require.NoError(t, err)
		for n, r := range all {
			switch {
			case r.Scenario != "":
				c = connect(t, table)
				continue
			case testing.Short() && n > 2000, c == nil:
				left++
				continue
			}
			c.set(t, r.At)
			got := c.do(t, r.Cmd)
			if strings.HasSuffix(got.Text, "is not served with --store; ask the store itself") {
				c = nil
				left++
				continue
			}
			if got.Type == '-' { // recorded without the argument and the usage
				got.Text = string(resp.Bare(resp.Error(got.Text)))
			}
			for _, w := range r.Cmd {
				if got.Text == "ERR syntax error near '"+w+"'" {
					got.Text = "ERR syntax error"
				}
			}
			played++
			require.True(t, r.Accepts(got), "%s:%d at %s: %q answered %s", file, n+1, r.At, r.Cmd, got)
		}
	}
	t.Logf("%d calls answered as recorded, %d left out", played, left)
	if !testing.Short() {
		require.Greater(t, played, 9*left, "most are played")
	}
}
