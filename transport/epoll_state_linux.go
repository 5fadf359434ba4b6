package transport

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Epoll is the transport of Linux: a few event loops, each with a thread of its
// own, one buffer to read into and one to reply from, shared by all its
// connections. An idle connection costs its [epollConn] and nothing else.
type Epoll struct {
	h     Handler
	log   *slog.Logger
	now   func() time.Time // the clock by which peers are slow
	lim   atomic.Pointer[Limits]
	loops []*loop
	place *placement

	handshakes *handshakes

	stop      chan struct{} // closed when Shutdown begins
	fin       chan struct{} // closed when the last loop has ended
	draining  atomic.Bool   // nobody accepts any more: loops finish and end
	cut       atomic.Bool   // loops drop what they have
	accepting sync.WaitGroup
	running   sync.WaitGroup

	accepted   atomic.Int64
	acceptErrs atomic.Int64
	lingering  atomic.Int64

	born time.Time
	busy busyLoops

	mu        sync.Mutex // guards what follows
	stopped   bool
	acceptors map[*acceptor]struct{}
}

// busyLoops is how busy the loops were at the last sample.
type busyLoops struct {
	mu     sync.Mutex      // guards what follows
	at     time.Duration   // of the sample, since born
	asleep []time.Duration // what each loop had slept by then
	ratios []float64
}

// acceptor takes connections from one listener as bare descriptors: Go's poller
// waits for the listener, but never learns of the connections.
type acceptor struct {
	e      *Epoll
	l      net.Listener
	tls    func() *tls.Config // nil without TLS
	dup    *os.File           // of l, which lets nobody else wait for it
	raw    syscall.RawConn
	closed atomic.Bool
	unix   *net.UnixAddr  // of a unix socket
	local  netip.AddrPort // of a TCP listener; an unspecified address is asked for each time

	// bequeaths: connections inherit the listener's options. Those of a multipath
	// listener, Go's default, do not: with Nagle on, a push waits 40 ms for an ACK.
	bequeaths atomic.Bool
}

// placement chooses loops for new connections: the one with the least to do, not
// the one with the fewest connections, of which most may be idle.
type placement struct {
	mu      sync.Mutex
	last    time.Time
	sampled []int64 // work of each loop at the last sample
	rate    []int64 // work per second of each loop up to then
	fresh   []int64 // connections given to each loop since
}

// The events of one wait. A connection is told of input and of its end, at the edge:
// its loop remembers what it has not read yet.
const (
	maxEvents  = 256
	readEvents = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
)

// doorbell is the slot number under which the eventfd of a loop reports.
const doorbell = -1

// loop is one event loop. Except for the mailbox and the counters it is the
// business of its own goroutine alone.
type loop struct {
	e      *Epoll
	ep     int // epoll descriptor
	bell   int // eventfd, rung by other threads when the loop is asleep
	worker Worker

	in  []byte // read into by all connections
	out []byte // replied from by all connections
	tlsScratch
	slots []*epollConn
	free  []int32
	ready []*epollConn // to be looked at in the next round, without an event
	round []*epollConn
	pendingReplies

	deferred []pendingReply // of this round, until its end
	deferBy  []byte         // what they consist of

	watched
	events [maxEvents]unix.EpollEvent
	parts  [][]byte // scratch of transmit
	iovecs [maxParts]unix.Iovec

	draining bool
	bal      balance
	tally    tally
	told     published
	conns    atomic.Int64
	mail     mailbox
}

// tlsScratch is what all connections with TLS share.
type tlsScratch struct {
	sealed []byte // records of a short reply
	plain  []byte // what becomes a record together
}

// pendingReplies is the replies of a round that wait for the log.
type pendingReplies struct {
	held   []pendingReply // until the log has been asked
	heldBy []byte         // what they consist of
	spares [][]byte       // buffers for those that wait for longer
}

// pendingReply is a reply of this round that is kept for a while: a part of heldBy if it waits
// for the log, of deferBy if only for the end of the round.
type pendingReply struct {
	c        *epollConn
	from, to int
}

// watched is the connections that the sweep looks at.
type watched struct {
	watch []*epollConn // slow to read, or lingering
	swept time.Time    // the last sweep; zero while nobody is watched
}

// balance is what a loop knows of the others' load.
type balance struct {
	at    time.Time
	next  int64   // own work at which to compare again
	seen  []int64 // work of each loop at the last comparison
	epoch uint16  // number of the interval; connections count their work in it
}

// tally are the counters of a loop, and published what others may see of them: the
// loop copies them once a round.
type tally struct {
	work, moved, bytesIn, bytesOut, reads, writes, pending, unread, slowClosed, rounds int64
}

// received notes that n bytes were received, if any were, and sent that n were sent.
func (t *tally) received(n int) {
	if n > 0 {
		t.bytesIn += int64(n)
		t.reads++
	}
}

func (t *tally) sent(n int) {
	if n > 0 {
		t.bytesOut += int64(n)
		t.writes++
	}
}

type published struct {
	_ [64]byte // others' cache lines stay theirs

	work, moved, bytesIn, bytesOut, reads, writes, pending, unread, slowClosed, rounds atomic.Int64

	// asleep is how long the loop has slept, in nanoseconds, without the sleep that has begun at
	// since, by the clock of [Epoll.born]; 0 if it is awake.
	asleep, since atomic.Int64

	_ [64]byte
}

// mailbox is how other threads reach a loop.
type mailbox struct {
	any    atomic.Bool // there is something in it, or a flag to look at
	asleep atomic.Bool // the loop waits in the kernel: ring the bell

	mu       sync.Mutex // guards what follows
	closed   bool
	arrivals []*epollConn
	posts    []*epollConn
	spare    [2][]*epollConn
}

// noSlot stands for no place in a list.
const noSlot = -1

// epollConn is one connection and its [Peer]. What is not atomic or constant
// belongs to the loop that has the connection.
type epollConn struct {
	loop    atomic.Pointer[loop]
	woken   atomic.Bool // a Wake that no Feed has followed yet
	aborted atomic.Bool
	posted  atomic.Bool  // in the inbox of a loop
	patient atomic.Bool  // it may take nothing for as long as it likes: see [Patient]
	input   atomic.Int32 // what the buffer of in takes, as its loop's tally knows of it
	output  atomic.Int32 // what out takes, likewise

	next Next
	connFlags

	fd      int32  // -1 once closed
	opened  int32  // fd, which any goroutine may read: it does not change
	slot    int32  // noSlot: not on its loop yet, or no more
	watched int32  // place in the loop's watch list
	work    uint32 // work in the balancing interval epoch
	epoch   uint16

	session Session // nil: only lingering
	in      unread  // received and not consumed
	out     reply   // not sent yet
	watch   slow
	tls     *secure // nil without TLS

	unix          *net.UnixAddr // of the listener; nil for TCP
	remote, local netip.AddrPort
}

// connFlags is where a connection stands.
type connFlags struct {
	readable bool // there may be something to read
	hup      bool // the peer will send no more than what is to be read
	eof      bool // and that has been read
	wantOut  bool // the kernel tells when there is room to write
	deferred bool // a reply leaves at the end of the round
	queued   bool // in the loop's ready list
	lastCall bool // the Feed for a Wake that came with the end has been had
}

// slow is what the sweep remembers of a connection.
type slow struct {
	sent    bool // the peer took something since the last look
	unsent  int32
	stuck   time.Duration // how long the peer has taken nothing
	linger  time.Duration // how long it may still linger; 0: it does not
	dropped int32         // bytes thrown away while lingering
}

// secure is the part of a connection of an event loop that has TLS. It also is the
// network, a [net.Conn], that crypto/tls sees: the handshake is done by a goroutine that
// may wait, over a duplicate of the descriptor. After it Read is recv, which never waits,
// and Write leaves records in sealed.
//
// Until the handshake is over it belongs to who does that, afterwards to the loop.
type secure struct {
	c      *epollConn
	conn   *tls.Conn // nil before the handshake
	early  atomic.Pointer[earlyConn]
	sealed []byte // records that have not left
	at     int    // sealed[:at] has

	drained bool  // there is nothing to read before the next event
	room    int32 // the size of the buffer that crypto/tls reads into
}

// earlyConn is a connection of an event loop before its loop: a goroutine does the
// handshake over a duplicate of the descriptor. It implements [handshaker].
type earlyConn struct {
	e    *Epoll
	c    *epollConn
	conf *tls.Config

	mu   sync.Mutex
	file *os.File  // guarded by mu, but who shakes hands reads it; nil before
	by   time.Time // guarded by mu; when the handshake has to end
}
