package connection_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/server"
)

// TestPauseWrites: a command that may change something waits for the end of the pause, together
// with everything that its client has sent after it. All waiting clients share one timer, and
// others are served. The pause ends to the millisecond, and every reply comes once and in order.
func TestPauseWrites(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed("--appendonly", "yes")
		admin := f.Dial()
		before := clock.Timers()
		require.Equal(t, inproc.OK, admin.Do("CLIENT", "PAUSE", "60000", "WRITE"))
		conns := make([]*inproc.Client, 10)
		for i := range conns {
			conns[i] = f.Dial()
			conns[i].Send("PING before\r\nCLIENT REPLY SKIP\r\n" + string(inproc.Encode(nil, "INCR", "n")) +
				fmt.Sprintf("SET k%[1]d v\r\nGET k%[1]d\r\n*2\r\n$4\r\nECHO\r\n$6\r\nbeh", i))
			conns[i].Expect(inproc.Bulk("before"))
		}
		w.Settle()
		require.EqualValues(t, len(conns), admin.InfoNumber("blocked_clients"))
		require.Equal(t, before+1, clock.Timers(), "one timer serves all")
		require.Equal(t, ":0\r\n", admin.Do("DBSIZE"))
		w.Advance(time.Minute - time.Millisecond)
		require.Equal(t, ":0\r\n", admin.Do("DBSIZE"))
		inproc.Silent(conns...)
		w.Advance(time.Millisecond)
		for _, c := range conns {
			c.Expect(inproc.OK, inproc.Bulk("v"))
			c.Send("ind\r\n")
			c.Expect(inproc.Bulk("behind"))
		}
		require.Equal(t, inproc.Bulk("10"), admin.Do("GET", "n"))
		require.Equal(t, "0", admin.Info("blocked_clients"))
		require.Equal(t, before, clock.Timers())
	})
}

// TestPauseOfEverything: CLIENT PAUSE ALL also postpones the next command of its own client, and
// CLIENT UNPAUSE. A further pause can only make it longer or stricter.
func TestPauseOfEverything(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		admin, other := f.Dial(), f.Dial()
		require.Equal(t, "+PONG\r\n", other.Do("PING"))
		admin.Send("CLIENT PAUSE 2000 WRITE\r\nCLIENT PAUSE 3000 WRITE\r\nCLIENT PAUSE 1000 ALL\r\nPING\r\nECHO behind\r\n")
		admin.Expect(inproc.OK, inproc.OK, inproc.OK)
		other.Send("CLIENT UNPAUSE\r\nGET k\r\n")
		w.Advance(3*time.Second - 1)
		inproc.Silent(admin, other)
		w.Advance(1)
		admin.Expect("+PONG\r\n", inproc.Bulk("behind"))
		other.Expect(inproc.OK, "$-1\r\n")
		require.Zero(t, clock.Timers())
	})
}

// TestPauseStopsChanges: once a pause of writes is answered nothing changes, although pipelines
// on other loops were running and clients were waiting for room.
func TestPauseStopsChanges(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin := f.Dial()
		admin.FillWindow()
		waiting := w.Queue(f, 2, inproc.WaitWindow)
		const writers, depth = 8, 500
		conns := make([]*inproc.Client, writers)
		for i := range conns {
			conns[i] = f.Dial()
			conns[i].Send(strings.Repeat("INCR n\r\nGET n\r\n", depth))
		}
		require.Equal(t, inproc.OK, admin.Do("CLIENT", "PAUSE", "3600000", "WRITE"))
		was := admin.Do("GET", "n")
		for range 20 {
			require.Equal(t, was, admin.Do("GET", "n"))
		}
		w.Advance(time.Minute) // there is room now
		inproc.Silent(waiting...)
		require.Equal(t, inproc.OK, admin.Do("CLIENT", "UNPAUSE"))
		waiting[0].Expect(inproc.Five(0, 1, 0, -1, 60))
		w.Advance(time.Minute)
		waiting[1].Expect(inproc.Five(0, 1, 0, -1, 60))
		for _, c := range conns {
			for range 2 * depth {
				c.Reply()
			}
		}
		require.Equal(t, inproc.Bulk(fmt.Sprint(writers*depth)), admin.Do("GET", "n"))
	})
}

// slowStore blocks in a delete until it is released.
type slowStore struct {
	env.Local
	inside, release chan struct{}
}

func (s slowStore) Delete(db int, key []byte) bool {
	close(s.inside)
	<-s.release
	return s.Local.Delete(db, key)
}

// TestPauseWaitsForChanges: a pause is answered only after the running commands that it postpones
// have ended.
func TestPauseWaitsForChanges(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		inside, release := make(chan struct{}), make(chan struct{})
		f := w.StartWith(func(o *server.Options) {
			o.WrapStore = func(st env.Local) env.Local { return slowStore{st, inside, release} }
		})
		changes, pauses := f.Dial(), f.Dial()
		changes.Command("DEL", "k")
		<-inside
		pauses.Command("CLIENT", "PAUSE", "1000", "WRITE")
		probe := f.Keyspace().NewHandle()
		defer probe.Close()
		for ; probe.Enter(); probe.Leave() {
			require.True(t, pauses.Conn.(*simnet.Conn).Idle(), "it is answered")
		}
		close(release) // the gate is closed, so the pause waits for the change
		changes.Expect(":0\r\n")
		pauses.Expect(inproc.OK)
	})
}

// TestPauseExtendsTheTimeToAuthenticate: a client that has not authenticated when a pause begins
// still has time for it after the pause.
func TestPauseExtendsTheTimeToAuthenticate(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--requirepass", "secret")
		admin := f.Dial()
		require.Equal(t, inproc.OK, admin.Do("AUTH", "secret"))
		require.Equal(t, inproc.OK, admin.Do("CLIENT", "PAUSE", "60000"))
		late := f.Dial()
		late.Send("AUTH secret\r\n")
		w.Advance(time.Minute - 1)
		late.Silent()
		w.Advance(1)
		late.Expect(inproc.OK)
	})
}

// TestPauseUnderLoad: pauses that begin and end all the time lose no command.
func TestPauseUnderLoad(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin, ended := f.Dial(), make(chan struct{})
		var all sync.WaitGroup
		for i := range 6 {
			c := f.Dial()
			all.Go(func() {
				for n := range 50 {
					c.Send(fmt.Sprintf("PING\r\nINCR n%[1]d\r\nMULTI\r\nINCR n%[1]d\r\nEXEC\r\nPING\r\n", i))
					c.Expect("+PONG\r\n", fmt.Sprintf(":%d\r\n", 2*n+1), inproc.OK, inproc.Queued, inproc.Array(fmt.Sprintf(":%d\r\n", 2*n+2)), "+PONG\r\n")
				}
			})
		}
		go func() { all.Wait(); close(ended) }()
		for going := true; going; {
			admin.Send("CLIENT PAUSE 1000 WRITE\r\nCLIENT PAUSE 1000 ALL\r\n")
			admin.Expect(inproc.OK, inproc.OK)
			time.Sleep(time.Second) // all continue at once
			admin.Send("CLIENT PAUSE 1000 WRITE\r\nPING\r\nCLIENT UNPAUSE\r\n")
			admin.Expect(inproc.OK, "+PONG\r\n", inproc.OK)
			select {
			case <-ended:
				going = false
			default:
			}
		}
	})
}
