package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/transport"
)

// postponed waits until so many clients are.
func (f *fixture) postponed(admin *client, n int) {
	f.t.Helper()
	eventually(f.t, "they are postponed", func() bool { return admin.info("blocked_clients") == fmt.Sprint(n) })
}

// TestPauseWrites: what may change something waits for the end of the pause with all that
// its client has sent behind it, for one timer in all; others are served. It ends to the
// millisecond, and every reply comes once and in its place.
func TestPauseWrites(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--appendonly", "yes")
		admin := f.dial()
		before := f.clock.Timers()
		require.Equal(t, okReply, admin.do("CLIENT", "PAUSE", "60000", "WRITE"))
		conns := make([]*client, 10)
		for i := range conns {
			conns[i] = f.dial()
			conns[i].send("PING before\r\nCLIENT REPLY SKIP\r\n" + string(frame("INCR", "n")) +
				fmt.Sprintf("SET k%[1]d v\r\nGET k%[1]d\r\n*2\r\n$4\r\nECHO\r\n$6\r\nbeh", i))
			conns[i].expect(bulk("before"))
		}
		f.postponed(admin, len(conns))
		require.Equal(t, before+1, f.clock.Timers(), "one timer serves all")
		require.Equal(t, ":0\r\n", admin.do("DBSIZE"))
		f.clock.Advance(time.Minute - time.Millisecond)
		require.Equal(t, ":0\r\n", admin.do("DBSIZE"))
		silent(t, conns...)
		f.clock.Advance(time.Millisecond)
		for _, c := range conns {
			c.expect(okReply, bulk("v"))
			c.send("ind\r\n")
			c.expect(bulk("behind"))
		}
		require.Equal(t, bulk("10"), admin.do("GET", "n"))
		require.Equal(t, "0", admin.info("blocked_clients"))
		require.Equal(t, before, f.clock.Timers())
	})
}

// TestPauseOfEverything: ALL postpones its own client's next command, too, and CLIENT
// UNPAUSE; a further pause makes it longer, never shorter or less strict.
func TestPauseOfEverything(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin, other := f.dial(), f.dial()
		require.Equal(t, "+PONG\r\n", other.do("PING"))
		admin.send("CLIENT PAUSE 2000 WRITE\r\nCLIENT PAUSE 3000 WRITE\r\nCLIENT PAUSE 1000 ALL\r\nPING\r\nECHO behind\r\n")
		admin.expect(okReply, okReply, okReply)
		other.send("CLIENT UNPAUSE\r\nGET k\r\n")
		f.clock.Advance(3*time.Second - 1)
		silent(t, admin, other)
		f.clock.Advance(1)
		admin.expect("+PONG\r\n", bulk("behind"))
		other.expect(okReply, "$-1\r\n")
		require.Zero(t, f.clock.Timers())
	})
}

// TestPauseStopsChanges: when a pause of writes is answered nothing changes any more,
// whatever was going on: pipelines on other loops, and clients who wait for room.
func TestPauseStopsChanges(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin := f.dial()
		f.fill(admin)
		waiting := f.queue(2, waitWindow)
		const writers, depth = 8, 500
		conns := make([]*client, writers)
		for i := range conns {
			conns[i] = f.dial()
			conns[i].send(strings.Repeat("INCR n\r\nGET n\r\n", depth))
		}
		require.Equal(t, okReply, admin.do("CLIENT", "PAUSE", "3600000", "WRITE"))
		was := admin.do("GET", "n")
		for range 20 {
			require.Equal(t, was, admin.do("GET", "n"))
		}
		f.clock.Advance(time.Minute) // there is room now
		silent(t, waiting...)
		require.Equal(t, okReply, admin.do("CLIENT", "UNPAUSE"))
		waiting[0].expect(five(0, 1, 0, -1, 60))
		f.clock.Advance(time.Minute)
		waiting[1].expect(five(0, 1, 0, -1, 60))
		for _, c := range conns {
			for range 2 * depth {
				c.reply()
			}
		}
		require.Equal(t, bulk(fmt.Sprint(writers*depth)), admin.do("GET", "n"))
	})
}

// slowStore deletes when it is told to.
type slowStore struct {
	env.Store
	inside, release chan struct{}
}

func (s slowStore) Delete(db int, key []byte) bool {
	close(s.inside)
	<-s.release
	return s.Store.Delete(db, key)
}

// TestPauseWaitsForChanges: a pause is not answered while a command that it is for is
// still at work.
func TestPauseWaitsForChanges(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	e := startEngine(t, transports()[0], func(st env.Store) env.Store { return slowStore{st, inside, release} })
	feed := func(words ...string) (ended chan string) {
		session, _ := e.Open(quietPeer{})
		worker := e.NewWorker()
		ended = make(chan string, 1)
		go func() { ended <- string(session.Feed(worker, frame(words...), nil).Out) }()
		return ended
	}
	changed := feed("DEL", "k")
	<-inside
	paused := feed("CLIENT", "PAUSE", "1000", "WRITE")
	for probe := e.ks.NewHandle(); probe.Enter(); probe.Leave() {
		require.Empty(t, paused, "it is answered")
	}
	close(release) // the gate is closed: it waits
	require.Equal(t, ":0\r\n", <-changed)
	require.Equal(t, okReply, <-paused)
	e.clock.Advance(time.Second)
}

// TestPausedClientsEnd: a postponed client that hangs up or is killed is gone, as is one
// that is there when the server stops, which nobody waits for.
func TestPausedClientsEnd(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--shutdown-timeout", "3600")
		admin, killed, left, closed, last := f.dial(), f.dial(), f.dial(), f.dial(), f.dial()
		id := killed.id()
		require.Equal(t, okReply, admin.do("CLIENT", "PAUSE", "3600000", "WRITE"))
		for _, c := range []*client{killed, left, closed, last} {
			c.send("SET k v\r\nPING\r\n")
		}
		f.postponed(admin, 4)
		require.Equal(t, ":0\r\n", admin.do("CLIENT", "UNBLOCK", id))
		require.Equal(t, ":1\r\n", admin.do("CLIENT", "KILL", "ID", id))
		killed.expectEnd()
		require.NoError(t, left.Close())
		require.NoError(t, closed.Conn.(interface{ CloseWrite() error }).CloseWrite())
		closed.expectEnd()
		f.postponed(admin, 1)
		f.end()
		last.expectEnd()
	})
}

// TestPauseExtendsTheTimeToAuthenticate: who is about to authenticate when a pause begins
// has time for it.
func TestPauseExtendsTheTimeToAuthenticate(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		e := startEngine(t, kind, func(st env.Store) env.Store { return st })
		limits := env.DefaultLimits()
		limits.Password = "secret"
		e.SetLimits(limits)
		admin := e.dial()
		require.Equal(t, okReply, admin.do("AUTH", "secret"))
		require.Equal(t, okReply, admin.do("CLIENT", "PAUSE", "60000"))
		waits := make(chan struct{}, 1)
		e.watch(func(turn transport.Turn) {
			if turn.Next == transport.Wait {
				select {
				case waits <- struct{}{}:
				default:
				}
			}
		})
		late := e.dial()
		late.send("AUTH secret\r\n")
		<-waits
		e.clock.Advance(time.Minute - 1)
		e.CloseOverdue(e.clock.Now())
		e.clock.Advance(1)
		late.expect(okReply)
	})
}

// TestPauseUnderLoad: pauses that begin and end all the time lose nobody's command.
func TestPauseUnderLoad(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		stop, ended := make(chan struct{}), make(chan struct{})
		admin := f.dial()
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				default:
					admin.send("CLIENT PAUSE 1000 WRITE\r\nCLIENT PAUSE 1000 ALL\r\n")
					admin.expect(okReply, okReply)
					f.clock.Advance(time.Second)
					admin.send("CLIENT PAUSE 1000 WRITE\r\nPING\r\nCLIENT UNPAUSE\r\n")
					admin.expect(okReply, "+PONG\r\n", okReply)
				}
			}
		}()
		var all sync.WaitGroup
		for i := range 6 {
			c := f.dial()
			all.Go(func() {
				for n := range 50 {
					c.send(fmt.Sprintf("PING\r\nINCR n%[1]d\r\nMULTI\r\nINCR n%[1]d\r\nEXEC\r\nPING\r\n", i))
					c.expect("+PONG\r\n", fmt.Sprintf(":%d\r\n", 2*n+1), okReply, queuedReply, array(fmt.Sprintf(":%d\r\n", 2*n+2)), "+PONG\r\n")
				}
			})
		}
		all.Wait()
		close(stop)
		<-ended
	})
}
