package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/remote/engine"
)

// heard is what a listener was told, in its order: "news", or the reason of an error.
type heard struct {
	mu   sync.Mutex
	told []string
}

func (h *heard) add(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var why *engine.Error
	switch {
	case err == nil:
		h.told = append(h.told, "news")
	case errors.As(err, &why):
		h.told = append(h.told, why.Reason)
	default:
		h.told = append(h.told, err.Error())
	}
}

// all returns what was told since the last call.
func (h *heard) all() (told []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	told, h.told = h.told, nil
	return told
}

// listens has e listen to the channel c, until the test ends.
func listens(t *testing.T, e *engine.Engine) *heard {
	t.Helper()
	h := &heard{}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { e.Listen(ctx, "{p}:c", h.add) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return h
}

const message = "*3\r\n$8\r\nsmessage\r\n$8\r\ncs:{p}:c\r\n$1\r\n7\r\n"

// confirms is the reply to subscribe and to ssubscribe.
func confirms(words []string) string {
	return "*3\r\n" + bulk(words[0]) + bulk(words[1]) + ":1\r\n"
}

func TestListenHearsMessages(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		more := atomic.Pointer[string]{}
		more.Store(new(string))
		f := newFake(t, func(words []string) string {
			if words[0] == "ssubscribe" {
				require.Equal(t, []string{"ssubscribe", "cs:{p}:c"}, words)
				return confirms(words) + *more.Load()
			}
			return healthy(words)
		})
		h := listens(t, f.ready(t))
		time.Sleep(200 * time.Millisecond)
		require.Equal(t, []string{"news"}, h.all())
		time.Sleep(2 * time.Second)
		require.Empty(t, h.all(), "the subscription is only made again")
		messages := message + message
		more.Store(&messages)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"news", "news"}, h.all())
	})
}

// TestListenGoesOnAfterFaults has a node end a subscription in all kinds of ways, or answer with an error.
func TestListenGoesOnAfterFaults(t *testing.T) {
	for name, test := range map[string]struct{ reply, reason string }{
		"closed":         {"close", engine.Broken},
		"silence":        {"", engine.Timeout},
		"no right":       {"-NOPERM User cs has no permissions to run the 'ssubscribe' command\r\n", "NOPERM"},
		"loading":        {"-LOADING Redis is loading\r\n", "LOADING"},
		"slot has moved": {"*3\r\n" + bulk("sunsubscribe") + bulk("cs:{p}:c") + ":0\r\n", "MOVED"},
		"no reply":       {"HTTP/1.1 400 Bad Request\r\n\r\n", engine.Malformed},
		"odd kind":       {"*3\r\n" + bulk("odd") + bulk("x") + ":0\r\n", engine.Broken},
		"odd message":    {"*1\r\n:7\r\n", engine.Malformed},
		"a number":       {":7\r\n", engine.Broken},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var reply atomic.Pointer[string]
				f := newFake(t, func(words []string) string {
					if words[0] != "ssubscribe" {
						return healthy(words)
					}
					if is := reply.Load(); is != nil {
						return *is
					}
					return confirms(words)
				})
				h := listens(t, f.ready(t))
				time.Sleep(time.Second)
				require.Equal(t, []string{"news"}, h.all())
				reply.Store(&test.reply)
				time.Sleep(6 * time.Second)
				told := h.all()
				require.NotEmpty(t, told)
				require.Equal(t, test.reason, told[0])
				require.LessOrEqual(t, len(told), 8, "the time between attempts grows")
				require.NotContains(t, told, "news")
				reply.Store(nil)
				time.Sleep(10 * time.Second)
				told = h.all()
				require.Equal(t, "news", told[len(told)-1])
			})
		})
	}
}

// TestListenWithoutShardedChannels: engines before Redis 7 have only those of all nodes.
func TestListenWithoutShardedChannels(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(t, func(words []string) string {
			if words[0] == "subscribe" {
				return confirms(words) + strings.Replace(message, "$8\r\nsmessage", "$7\r\nmessage", 1)
			}
			return healthy(words) // an unknown command
		})
		h := listens(t, f.ready(t))
		time.Sleep(200 * time.Millisecond)
		require.Equal(t, []string{"news", "news"}, h.all())
	})
}

// TestListenFollowsTheSlot: a node that no longer has the slot says so, or only the topology does.
func TestListenFollowsTheSlot(t *testing.T) {
	for _, says := range []bool{true, false} {
		bubble.Test(t, func(t *testing.T) {
			var at atomic.Pointer[fake] // the node that has all slots
			var subscribed atomic.Pointer[string]
			node := func(is func() *fake) func(words []string) string {
				return func(words []string) string {
					port := at.Load().addr[strings.LastIndexByte(at.Load().addr, ':')+1:]
					switch words[0] {
					case "info":
						return bulk("cluster_enabled:1\r\n")
					case "cluster":
						return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + bulk("127.0.0.1") + ":" + port + "\r\n"
					case "ssubscribe":
						if says && is() != at.Load() {
							return "-MOVED 1 " + at.Load().addr + "\r\n"
						}
						subscribed.Store(&is().addr)
						return confirms(words)
					}
					return healthy(words)
				}
			}
			var first, other *fake
			first = newFake(t, healthy)
			other = first.another(node(func() *fake { return other }))
			at.Store(first)
			answer := node(func() *fake { return first })
			first.answer.Store(&answer)
			h := listens(t, first.ready(t))
			time.Sleep(time.Second)
			require.Equal(t, []string{"news"}, h.all())
			require.Equal(t, first.addr, *subscribed.Load())
			at.Store(other)
			time.Sleep(20 * time.Second)
			require.Equal(t, []string{"MOVED", "news"}, h.all())
			require.Equal(t, other.addr, *subscribed.Load())
		})
	}
}

// TestListenEndsWithTheEngine and with its context, also while it cannot connect.
func TestListenEndsWithTheEngine(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(t, func(words []string) string {
			if words[0] == "ssubscribe" {
				return confirms(words)
			}
			return healthy(words)
		})
		e := f.ready(t)
		h, ended := &heard{}, make(chan struct{})
		go func() { defer close(ended); e.Listen(context.Background(), "{p}:c", h.add) }()
		time.Sleep(time.Second)
		require.Equal(t, []string{"news"}, h.all())
		e.Close()
		<-ended
		e.Listen(context.Background(), "{p}:c", h.add)
		require.Empty(t, h.all())

		f.listener.Close()
		h = listens(t, f.engineAt(t))
		time.Sleep(time.Second)
		require.Contains(t, h.all(), engine.Starting)
	})
}
