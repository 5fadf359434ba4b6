package epoll

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
)

// maxEvents is the number of events of one wait. readEvents report input and its end,
// edge-triggered: the loop remembers which connections it has not read to the end.
const (
	maxEvents  = 256
	readEvents = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
)

// wakeSlot is the slot number in events of the loop's eventfd.
const wakeSlot = -1

// loop is one event loop. Only its goroutine may use it, except for the mailbox and the published
// counters.
type loop struct {
	t      *Transport
	ep     int // the descriptor of the epoll instance
	wakeFD int // eventfd, written by other threads when the loop sleeps
	worker transport.Worker

	in  []byte // read buffer of all connections
	out []byte // reply buffer of all connections
	tlsScratch
	slots []*conn
	free  []int32
	ready []*conn // connections to run in the next round without an event
	round []*conn
	pendingReplies

	deferred []pendingReply // replies that wait for the end of the round
	deferBy  []byte         // the bytes of the replies in deferred

	watched
	events [maxEvents]unix.EpollEvent
	parts  [][]byte // the pieces of one send; reused by transmit
	iovecs [maxParts]unix.Iovec

	draining  bool
	bal       balance
	tally     tally
	published published
	conns     atomic.Int64
	mail      mailbox
}

func newLoop(e *Transport) (*loop, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	bell, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		_ = unix.Close(ep) // the first error says more than an error of Close
		return nil, err
	}
	l := &loop{t: e, ep: ep, wakeFD: bell, parts: make([][]byte, 0, maxParts)}
	// The eventfd is edge-triggered: a write is an event even if earlier ones were never read.
	ring := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: wakeSlot}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, bell, &ring); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// release closes the mailbox and the descriptors of a loop that does not run yet or any more.
func (l *loop) release() {
	l.mail.close()
	_ = unix.Close(l.ep)     // nothing was written to the descriptor, so an error does not matter
	_ = unix.Close(l.wakeFD) // nothing was written to the descriptor, so an error does not matter
}

// loop runs until the transport drains and the last connection is gone. It locks its thread:
// sharing a thread costs 0.2 µs for every wake-up.
func (l *loop) loop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.worker = l.t.h.NewWorker()
	if worker, ok := l.worker.(transport.Pinned); ok {
		worker.Pin()
	}
	for {
		n := l.wait()
		l.resize()
		ending := l.collect()
		for i := range l.events[:n] {
			l.event(&l.events[i])
			if len(l.heldBy) > maxHeld {
				l.commit()
			}
		}
		l.round, l.ready = l.ready, l.round[:0]
		for i, c := range l.round {
			l.round[i] = nil
			c.queued = false
			l.run(c)
			if len(l.heldBy) > maxHeld {
				l.commit()
			}
		}
		l.sendDeferred()
		l.commit()
		l.sweep()
		l.publish()
		l.balance(n)
		if ending && l.finished() {
			return
		}
	}
}

// wait waits for events, stores them in l.events and returns their number. It sleeps only if there
// is nothing else to do. Only then it enters Go's scheduler, which takes a microsecond.
func (l *loop) wait() int {
	if n := poll(l.ep, l.events[:]); n > 0 || len(l.ready) > 0 {
		return n // events can arrive while the replies of the last round are sent
	}
	timeout := -1
	if len(l.watch) > 0 {
		timeout = int(l.sweepEvery().Milliseconds())
	}
	if !l.mail.beginSleep() {
		return poll(l.ep, l.events[:])
	}
	began := time.Since(l.t.born)
	l.published.since.Store(int64(began))
	n, err := unix.EpollWait(l.ep, l.events[:], timeout)
	l.published.since.Store(0)
	l.published.asleep.Add(int64(time.Since(l.t.born) - began))
	l.mail.endSleep()
	if err != nil { // the error can only be EINTR
		return 0
	}
	return n
}

func (l *loop) resize() {
	if want := l.t.lim.Load().Chunk + smallRest; len(l.in) != want {
		l.in = make([]byte, want)
	}
}

// event handles one epoll event. It ignores events of connections that have been closed.
func (l *loop) event(e *unix.EpollEvent) {
	if e.Fd == wakeSlot {
		return
	}
	c := l.slots[e.Fd]
	if c == nil || c.fd != e.Pad {
		return // the connection was closed in this round
	}
	if e.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.readable = true
		if c.tls != nil {
			c.tls.drained = false
		}
	}
	if e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP) != 0 {
		c.hup = true
	}
	if e.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 && c.parked() {
		l.close(c) // the connection is closed in both directions, so no reply can be delivered
		return
	}
	l.run(c)
}

// collect processes what other threads have left: new connections, wakes, aborts and the stop. It
// reports whether the loop has to end when it has no connections.
func (l *loop) collect() (ending bool) {
	if !l.mail.any.Load() {
		return l.draining
	}
	arrivals, posts := l.mail.take()
	for i, c := range arrivals {
		arrivals[i] = nil
		l.admit(c)
	}
	for i, c := range posts {
		posts[i] = nil
		c.posted.Store(false)
		l.run(c)
	}
	if l.t.draining.Load() && !l.draining {
		l.draining = true
		l.all(func(l *loop, c *conn) {
			c.watch.linger = min(c.watch.linger, base.StopLinger)
			l.run(c)
		})
	}
	if l.t.cut.Load() {
		l.all((*loop).close)
	}
	return l.draining
}

// finished reports whether the loop has no connections and none is about to arrive. If so, it
// closes the mailbox.
func (l *loop) finished() bool {
	return len(l.free) == len(l.slots) && l.mail.shut()
}

// admit gives c a slot, registers c with epoll and runs it. It closes c if the kernel refuses.
func (l *loop) admit(c *conn) {
	if n := len(l.free); n > 0 {
		c.slot = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		c.slot = int32(len(l.slots))
		l.slots = append(l.slots, nil)
	}
	l.slots[c.slot] = c
	if c.watch.linger > 0 {
		l.keepWatch(c)
	}
	if !l.subscribe(c, unix.EPOLL_CTL_ADD) {
		l.close(c)
		return
	}
	if c.tls != nil && c.session != nil {
		l.arrived(c)
	}
	l.run(c)
}

// tally holds the counters of a loop. published is the copy that other goroutines read. The loop
// updates it once a round.
type tally struct {
	work, moved, bytesIn, bytesOut, reads, writes, pending, unread, slowClosed, rounds int64
}

// received counts a read of n bytes. It ignores a read of 0 bytes.
func (t *tally) received(n int) {
	if n > 0 {
		t.bytesIn += int64(n)
		t.reads++
	}
}

// sent counts a write of n bytes. It ignores a write of 0 bytes.
func (t *tally) sent(n int) {
	if n > 0 {
		t.bytesOut += int64(n)
		t.writes++
	}
}

type published struct {
	_ [64]byte // padding, which keeps other data out of these cache lines

	work, moved, bytesIn, bytesOut, reads, writes, pending, unread, slowClosed, rounds atomic.Int64

	// asleep is the total time that the loop has slept, in nanoseconds, without the present sleep.
	// since is the instant at which the present sleep began, in nanoseconds after
	// [Transport.born]; 0 if the loop is awake.
	asleep, since atomic.Int64

	_ [64]byte
}

func (l *loop) publish() {
	l.tally.rounds++
	l.published.rounds.Store(l.tally.rounds)
	l.published.work.Store(l.tally.work)
	l.published.moved.Store(l.tally.moved)
	l.published.bytesIn.Store(l.tally.bytesIn)
	l.published.bytesOut.Store(l.tally.bytesOut)
	l.published.reads.Store(l.tally.reads)
	l.published.writes.Store(l.tally.writes)
	l.published.pending.Store(l.tally.pending)
	l.published.unread.Store(l.tally.unread)
	l.published.slowClosed.Store(l.tally.slowClosed)
}
