package session_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/transport"
)

// late is shared by the stores of goroutines in the background. They have to wait before they
// enter.
type late struct {
	came, enter, left chan struct{}
	letIn             func() // closes enter, once
}

// lateStore is one of these stores. There may be several at once.
type lateStore struct {
	env.Local
	*late
}

func (s lateStore) Enter() bool {
	tell(s.came)
	<-s.enter
	return s.Local.Enter()
}

func (s lateStore) Leave() {
	s.Local.Leave()
	tell(s.left)
}

// tell sends to a channel unless its buffer is full.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// startLate opens a session, and makes all goroutines outside of its worker enter the store late.
func startLate(t *testing.T) (s *inproc.Fed, all *late) {
	t.Helper()
	all = &late{came: make(chan struct{}, 1), enter: make(chan struct{}), left: make(chan struct{}, 1)}
	all.letIn = sync.OnceFunc(func() { close(all.enter) })
	first := true // the first store belongs to the session
	s = inproc.OpenWith(t, func(o *server.Options) {
		o.WrapStore = func(st env.Local) env.Local {
			if first {
				return st
			}
			return lateStore{st, all}
		}
	})
	first = false
	t.Cleanup(all.letIn) // before the engine waits for its background goroutines
	return s, all
}

// TestBackgroundWorkBeginsAfterThePause: a change in the background that has not begun before a
// pause begins after it. If the server stops before that, the change never begins, and its client
// gets no reply that says so.
func TestBackgroundWorkBeginsAfterThePause(t *testing.T) {
	const loop = "local n = 0 while n < 1 do n = n + 1 end return redis.call('DEL', KEYS[1])"
	for name, packet := range map[string][]byte{
		"offloaded": inproc.Encode(nil, "FLUSHALL"),
		"alone":     append(append(inproc.Encode(nil, "MULTI"), inproc.Encode(nil, "EVAL", loop, "1", "k")...), inproc.Encode(nil, "EXEC")...),
	} {
		for _, stops := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
					admin, late := startLate(t)
					changes := admin.Beside()
					require.Equal(t, inproc.OK, admin.Do("SET", "k", "v"))
					require.Equal(t, transport.Park, changes.Turn(packet, nil).Next)
					<-late.came
					require.Equal(t, inproc.OK, admin.Do("CLIENT", "PAUSE", "1000", "WRITE"))
					late.letIn()
					<-late.left
					w.Settle() // the exclusive command leaves the store before it starts the world
					require.Equal(t, inproc.Bulk("v"), admin.Do("GET", "k"))
					if stops {
						admin.Server().Engine().Drain()
						turn := changes.Turn(nil, nil)
						require.Equal(t, transport.Close, turn.Next)
						require.Empty(t, turn.Out)
						return
					}
					admin.Server().Clock.Advance(time.Second)
					w.Settle()
					require.Equal(t, "$-1\r\n", admin.Do("GET", "k"))
				})
			})
		}
	}
}

// TestBackgroundWorkIsCheckedWhenItBegins: a permitted command that waits for its turn in the
// background does nothing if it is forbidden by then.
func TestBackgroundWorkIsCheckedWhenItBegins(t *testing.T) {
	const noKey = "-NOPERM No permissions to access a key\r\n"
	many := []string{"DEL", "k"}
	for range 10_000 {
		many = append(many, "x")
	}
	for name, c := range map[string]struct {
		call []string
		lost []string
		want string
	}{
		"offloaded": {[]string{"FLUSHALL"}, []string{"-flushall"}, "-NOPERM User app has no permissions to run the 'flushall' command\r\n"},
		"flushes":   {[]string{"FLUSHDB"}, []string{"resetkeys", "~k"}, noKey},
		"many":      {many, []string{"resetkeys", "~k"}, noKey},
		"script":    {[]string{"EVAL", "return redis.call('DEL', KEYS[1]) --" + strings.Repeat("x", 4000), "1", "k"}, []string{"resetkeys", "%R~k"}, noKey},
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				s, late := startLate(t)
				users := s.Server().Engine().Users
				require.Equal(t, inproc.OK, s.Do("SET", "k", "v"))
				_, _, err := users.Set("app", []string{"on", "nopass", "~*", "+@all"})
				require.NoError(t, err)
				require.Equal(t, inproc.OK, s.Do("AUTH", "app", "x"))
				require.Equal(t, transport.Park, s.Turn(inproc.Encode(nil, c.call...), nil).Next)
				<-late.came
				_, _, err = users.Set("app", c.lost)
				require.NoError(t, err)
				late.letIn()
				require.Equal(t, c.want, s.Rest())
				_, _, err = users.Set("app", []string{"~*", "+@all"})
				require.NoError(t, err)
				w.Settle() // an exclusive command is answered before the world is started
				require.Equal(t, inproc.Bulk("v"), s.Do("GET", "k"), "it has changed nothing")
			})
		})
	}
}
