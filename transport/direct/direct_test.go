package direct_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/direct"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// lines is a LineHandler whose replies are status replies.
type lines struct{ *transporttest.LineHandler }

func (h lines) Admit(p transport.Peer) (transport.Session, []byte) {
	s, rejection := h.Open(p)
	if s == nil {
		return nil, rejection
	}
	return &lineSession{LineSession: s.(*transporttest.LineSession)}, nil
}

type lineSession struct{ *transporttest.LineSession }

func (s *lineSession) Introduce(string) {}
func (s *lineSession) Touch()           {}

var errUnknown = errors.New("no such user")

func (s *lineSession) Enter(user string) error {
	if user == "unknown" {
		return errUnknown
	}
	return nil
}

func (s *lineSession) Feed(w transport.Worker, in, out []byte) transport.Turn {
	turn := s.LineSession.Feed(w, in, out)
	turn.Out = bytes.ReplaceAll(turn.Out, []byte("\n"), []byte("\r\n+"))
	if n := len(turn.Out); n > 0 {
		turn.Out = append([]byte("+"), turn.Out[:n-1]...)
	}
	return turn
}

// world is a transport with a LineHandler, and connections of it.
type world struct {
	t *testing.T
	h *transporttest.LineHandler
	*direct.Transport
}

func start(t *testing.T) *world {
	h := transporttest.NewLineHandler()
	w := &world{t, h, direct.New(lines{h})}
	t.Cleanup(func() {
		require.NoError(t, w.Shutdown(context.Background()))
		require.Empty(t, h.Breaches)
		require.Equal(t, h.Opened.Load(), h.Closed.Load())
	})
	return w
}

var here = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}

func (w *world) open(gone func()) *direct.Conn {
	w.t.Helper()
	c, err := w.Open(direct.Origin{Remote: here, Local: here, Library: "test", Gone: gone})
	require.NoError(w.t, err)
	require.NoError(w.t, c.Login("default"))
	return c
}

// result is what a call of Do has returned.
type result struct {
	out string
	err error
	is  bool
}

// begin calls Do on a goroutine of its own. The result is set when the call is finished.
func begin(c *direct.Conn, commands string) *result {
	var r result
	go func() {
		out, err := c.Do([]byte(commands), strings.Count(commands, "\n"), nil)
		r = result{string(out), err, true}
	}()
	synctest.Wait()
	return &r
}

func TestCallsOfOneBatchShareABarrier(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := start(t)
		c := w.open(nil)
		first := begin(c, "sync 1\n")
		second, third := begin(c, "echo a\nsync 2\n"), begin(c, "sync 3\n")
		require.False(t, first.is)
		feeds := w.h.Sessions()[0].Feeds.Load()
		w.h.Synced(1)
		synctest.Wait()
		require.Equal(t, &result{"+synced 1\r\n", nil, true}, first)
		require.False(t, second.is, "the log has not reached the barrier")
		require.Equal(t, feeds+1, w.h.Sessions()[0].Feeds.Load(), "both calls are in one Feed")
		w.h.Synced(3)
		synctest.Wait()
		require.Equal(t, &result{"+a\r\n+synced 2\r\n", nil, true}, second)
		require.Equal(t, &result{"+synced 3\r\n", nil, true}, third)
	})
}

func TestLostRepliesAreReplaced(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := start(t)
		w.h.Lost, w.h.Regret = 5, func([]byte) []byte { return []byte("-LOST\r\n") }
		r := begin(w.open(nil), "sync 5\n")
		w.h.Synced(5)
		synctest.Wait()
		require.Equal(t, &result{"-LOST\r\n", nil, true}, r)
	})
}

func TestCallsWaitBehindAParkedOne(t *testing.T) {
	for _, park := range []string{"park", "wait"} {
		t.Run(park, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := start(t)
				c := w.open(nil)
				first, second := begin(c, park+" x\n"), begin(c, "echo a\n")
				c.Wake() // without a reason
				synctest.Wait()
				require.False(t, first.is || second.is)
				w.h.Finish("x", "done")
				synctest.Wait()
				require.Equal(t, &result{"+done\r\n", nil, true}, first)
				require.Equal(t, &result{"+a\r\n", nil, true}, second)
			})
		})
	}
}

func TestTheEndOfAConnection(t *testing.T) {
	for name, end := range map[string]func(w *world, c *direct.Conn){
		"close":    func(_ *world, c *direct.Conn) { c.Close() },
		"abort":    func(_ *world, c *direct.Conn) { c.Abort(); c.Abort() },
		"shutdown": func(w *world, _ *direct.Conn) { _ = w.Shutdown(ended(w.t)) },
	} {
		for _, work := range []string{"", "park x\n", "sync 9\n"} {
			t.Run(name+" during "+work, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					w, gone := start(t), atomic.Int32{}
					c := w.open(func() { gone.Add(1) })
					var running, waiting *result
					if work != "" {
						running, waiting = begin(c, work), begin(c, "echo a\n")
					}
					end(w, c)
					synctest.Wait()
					if work != "" {
						require.ErrorIs(t, running.err, direct.ErrClosed)
						require.ErrorIs(t, waiting.err, direct.ErrClosed)
					}
					require.EqualValues(t, 1, w.h.Closed.Load())
					require.Equal(t, name == "abort", gone.Load() == 1)
					out, err := c.Do([]byte("echo b\n"), 1, []byte("kept"))
					require.ErrorIs(t, err, direct.ErrClosed)
					require.Equal(t, "kept", string(out))
					require.Zero(t, w.Stats().Connections)
				})
			})
		}
	}
}

// ended returns a context that has ended.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestShutdownFinishesWhatRuns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := start(t)
		c := w.open(nil)
		r := begin(c, "park x\n")
		stopped := false
		go func() { stopped = w.Shutdown(t.Context()) == nil }()
		synctest.Wait()
		require.False(t, stopped)
		_, err := w.Open(direct.Origin{Remote: here, Local: here})
		require.ErrorIs(t, err, direct.ErrClosed)
		w.h.Finish("x", "done")
		synctest.Wait()
		require.Equal(t, &result{"+done\r\n", nil, true}, r)
		require.True(t, stopped)
	})
}

func TestRepliesThatDoNotMatchCloseTheConnection(t *testing.T) {
	for commands, replies := range map[string]int{"echo a\n": 2, "echo a\necho b\n": 1, "echo a": 1, "": 1, "bye\necho a\n": 1, "big 3\nbye\n": 3} {
		bubble.Test(t, func(t *testing.T) {
			c := start(t).open(nil)
			_, _ = c.Do([]byte(commands), replies, nil) // replies that are too many are found behind those of the call
			_, err := c.Do([]byte("echo a\n"), 1, nil)
			require.Error(t, err, "%q", commands)
		})
	}
}

func TestOpenIsRefused(t *testing.T) {
	w := start(t)
	w.h.Refuse = func() []byte { return []byte("-ERR full\r\n") }
	_, err := w.Open(direct.Origin{Remote: here, Local: here})
	require.Equal(t, direct.Refusal("ERR full"), err)
	require.Zero(t, w.Stats().Connections)
}

// TestLogin: a client has no calls before it has a user, and another user may be tried after an error.
func TestLogin(t *testing.T) {
	w := start(t)
	c, err := w.Open(direct.Origin{Remote: here, Local: here, Kept: func() int64 { return 7 }})
	require.NoError(t, err)
	require.EqualValues(t, 7, w.Stats().Pending)
	require.ErrorIs(t, c.Login("unknown"), errUnknown)
	_, err = c.Do([]byte("echo a\n"), 1, nil)
	require.ErrorIs(t, err, direct.ErrUser)
	require.NoError(t, c.Login("default"))
	out, err := c.Do([]byte("echo a\n"), 1, nil)
	require.NoError(t, err)
	require.Equal(t, "+a\r\n", string(out))
	c.Close()
	require.ErrorIs(t, c.Login("default"), direct.ErrClosed)
}

// TestManyCallers runs commands of a server by many goroutines: each gets the replies to its own.
func TestManyCallers(t *testing.T) {
	tr := direct.New(inproc.Open(t).Server().Engine())
	c, err := tr.Open(direct.Origin{Remote: here, Local: here, Library: "test"})
	require.NoError(t, err)
	require.NoError(t, c.Login("default"))
	long := strings.Repeat("x", 20_000)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 100 {
				text := fmt.Sprint(i, j)
				in := resp.AppendCommand(nil, []byte("SET"), []byte(text), []byte(long))
				in = resp.AppendCommand(in, []byte("ECHO"), []byte(text))
				in = resp.AppendCommand(in, []byte("MGET"), []byte(text), []byte("no"))
				in = resp.AppendCommand(in, []byte("DEL"), []byte(text))
				out, err := c.Do(in, 4, []byte("before "))
				if err != nil || string(out) != "before +OK\r\n"+inproc.Bulk(text)+inproc.Array(inproc.Bulk(long), "$-1\r\n")+":1\r\n" {
					t.Errorf("call %s: %v", text, err)
					return
				}
			}
		})
	}
	all.Wait()
	info, err := c.Do(resp.AppendCommand(nil, []byte("CLIENT"), []byte("LIST")), 1, nil)
	require.NoError(t, err)
	require.Contains(t, string(info), "lib-name=test")
	s := tr.Stats()
	require.EqualValues(t, 1, s.Accepted)
	require.Greater(t, s.BytesOut, int64(8*100*len(long)))
	require.NoError(t, tr.Shutdown(t.Context()))
}

func TestACallAllocatesNothing(t *testing.T) {
	tr := direct.New(inproc.Open(t).Server().Engine())
	c, err := tr.Open(direct.Origin{Remote: here, Local: here})
	require.NoError(t, err)
	require.NoError(t, c.Login("default"))
	in, out := resp.AppendCommand(nil, []byte("CL.THROTTLE"), []byte("k"), []byte("15"), []byte("30"), []byte("60")), make([]byte, 0, 100)
	require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = c.Do(in, 1, out) }))
	require.NoError(t, tr.Shutdown(t.Context()))
}

func BenchmarkDo(b *testing.B) {
	tr := direct.New(inproc.OpenTimed(b).Server().Engine())
	c, err := tr.Open(direct.Origin{Remote: here, Local: here})
	require.NoError(b, err)
	require.NoError(b, c.Login("default"))
	in, out := resp.AppendCommand(nil, []byte("CL.THROTTLE"), []byte("k"), []byte("15"), []byte("30"), []byte("60")), make([]byte, 0, 100)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Do(in, 1, out)
	}
}
