package epoll

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// Work returns the work of each loop of e.
func Work(e *Transport) []int64 {
	var work []int64
	for _, l := range e.loops {
		work = append(work, l.published.work.Load())
	}
	return work
}

// Moved returns how many connections have moved from one loop to another.
func Moved(e *Transport) int64 {
	moved := int64(0)
	for _, l := range e.loops {
		moved += l.published.moved.Load()
	}
	return moved
}

// LoopOf returns the index of the loop that serves a connection.
func LoopOf(e *Transport, p transport.Peer) int { return slices.Index(e.loops, p.(*conn).loop.Load()) }

// Latecomer is a connection that has been assigned to a loop and has not arrived there. The loop
// does not run: the test collects its mail.
type Latecomer struct {
	c, neighbour *conn
	from, to     *loop
}

// NewLatecomer opens the sessions of a latecomer and then of a neighbour, which is on its loop
// already. If moved is set, the latecomer has been on another loop before.
func NewLatecomer(t *testing.T, e *Transport, moved bool) *Latecomer {
	l := &Latecomer{}
	for _, made := range []**loop{&l.from, &l.to} {
		idle, err := newLoop(e)
		if err != nil {
			t.Fatal(err)
		}
		idle.worker = e.h.NewWorker()
		idle.resize()
		*made = idle
	}
	for _, opened := range []**conn{&l.c, &l.neighbour} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(pair[1]) })
		c := &conn{fd: int32(pair[0]), slot: noSlot, watched: noSlot}
		c.session, _ = e.h.Open(c)
		*opened = c
	}
	l.to.arrive(l.neighbour)
	l.to.collect()
	if moved {
		l.from.arrive(l.c)
		l.from.collect()
		l.from.vacate(l.c)
	}
	l.c.loop.Store(l.to)
	return l
}

// Collect makes the loop process its mail.
func (l *Latecomer) Collect() { l.to.collect() }

// Arrive puts the latecomer into the loop's mailbox.
func (l *Latecomer) Arrive() { l.to.arrive(l.c) }

// Neighbour reports whether the neighbour is still on the loop.
func (l *Latecomer) Neighbour() bool { return l.has(l.neighbour) }

// Arrived reports whether the latecomer is on the loop.
func (l *Latecomer) Arrived() bool { return l.has(l.c) }

func (l *Latecomer) has(c *conn) bool { return c.fd >= 0 && slices.Contains(l.to.slots, c) }

// End closes everything.
func (l *Latecomer) End() {
	l.to.all((*loop).close)
	l.from.release()
	l.to.release()
}

// NewKeptInput returns the input buffer of a connection of an event loop.
func NewKeptInput() transporttest.KeptInput { return &keptByLoop{} }

type keptByLoop struct{ unread }

func (k *keptByLoop) Room(limit, chunk int) []byte { return k.room(limit, chunk) }
func (k *keptByLoop) Received(n int)               { k.w += n }
func (k *keptByLoop) Consumed(n int)               { k.consumed(n) }
func (k *keptByLoop) Bytes() []byte                { return k.bytes() }
func (k *keptByLoop) Size() int                    { return int(k.size()) }
func (k *keptByLoop) Release()                     { k.drop() }
