package replication

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/resp"
)

const (
	// ackEvery is the interval at which a replica acknowledges in addition to the acknowledgement
	// after each round.
	ackEvery = time.Second
	// drainFor is the time for which a connection is still read after a write to it has failed.
	drainFor = 5 * time.Second
	// readBuffer is the size of the read buffer in bytes. It is also the minimum number of bytes
	// by which the buffer of a chunk grows.
	readBuffer = 64 << 10
	// maxRound is the number of bytes after which a round ends although more data is buffered. A
	// round is the chunks between two calls of receiver.round.
	maxRound = 256 << 10
	// keptChunk is the maximum capacity of a buffer for chunks that is kept for the next chunk.
	keptChunk = 4 << 20
)

// progress has two offsets of the stream: a replica has applied all bytes before applied, and all
// bytes before durable are durable on it. durable is valid only if hasDurable is true.
type progress struct {
	applied, durable uint64
	hasDurable       bool
}

// receiver receives the events of a link. Except for progress, the goroutine of the link makes
// all calls.
type receiver interface {
	// greeting returns what the link sends in the handshake.
	greeting() greeting
	// answered receives a, the answer of the peer to PSYNC, or the error err with which the
	// handshake has failed. If answered returns an error, the link ends.
	answered(a answer, err error) error
	// chunk receives the next chunk. The payload of c is valid until chunk returns. If chunk
	// returns an error, the link ends.
	chunk(c Chunk) error
	// round is called when no more data is buffered, or when maxRound bytes were read since the
	// last call.
	round()
	// incomplete reports whether a full resynchronization or a frame has arrived only in part.
	incomplete() bool
	// progress returns what the link acknowledges to the peer. Any goroutine may call progress.
	progress() progress
}

// link is one connection to a primary. Any goroutine may call cut, silence, sinceProgress and
// overdue.
type link struct {
	o            *Options
	to           receiver
	cancel       context.CancelFunc
	lastByte     atomic.Int64  // stopwatch reading when the last byte arrived
	lastProgress atomic.Int64  // stopwatch reading of the last progress: see sinceProgress
	every        bool          // whether every byte counts as progress; used by the goroutine of run only
	acks         chan struct{} // has capacity one; an element means that an acknowledgement has to be sent

	mu   sync.Mutex // mu guards the fields below
	conn net.Conn   // the connection; nil until it is dialed
	why  error      // the reason for which the link was cut; nil if it was not
}

// newLink returns a link that is not connected yet. Its events go to the receiver to.
func newLink(o *Options, to receiver) *link {
	l := &link{o: o, to: to, acks: make(chan struct{}, 1), cancel: func() {}}
	l.received()
	return l
}

// cut ends the link and closes its connection, unless the link was cut before. why is the reason,
// which run then returns.
func (l *link) cut(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why != nil {
		return
	}
	l.why = why
	l.cancel()
	if l.conn != nil {
		_ = l.conn.Close() // an error of Close does not matter, because the link has ended
	}
}

// silence returns the time since the last byte arrived.
func (l *link) silence() time.Duration {
	return l.o.Stopwatch() - time.Duration(l.lastByte.Load())
}

// sinceProgress returns the time since the primary has made progress. Progress is a reply line, a
// byte of a chunk's payload, or the end of a chunk that is not a keepalive. If nothing is
// incomplete, a keepalive also counts as progress.
func (l *link) sinceProgress() time.Duration {
	return l.o.Stopwatch() - time.Duration(l.lastProgress.Load())
}

// overdue returns the reason to cut the link if the primary has exceeded timeout, the value of
// repl-timeout: errQuiet or errStuck. Otherwise, and if timeout is 0, it returns nil.
func (l *link) overdue(timeout time.Duration) error {
	switch {
	case timeout <= 0:
	case l.silence() > timeout:
		return errQuiet
	case l.sinceProgress() > timeout:
		return errStuck
	}
	return nil
}

// received records that bytes have arrived just now, and that they are progress.
func (l *link) received() {
	now := int64(l.o.Stopwatch())
	l.lastByte.Store(now)
	l.lastProgress.Store(now)
}

func (l *link) progressed() { l.lastProgress.Store(int64(l.o.Stopwatch())) }

// run connects to address and receives until the link ends. It returns the reason why the link
// has ended, which is never nil.
func (l *link) run(ctx context.Context, address string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.cancel = cancel
	if l.why != nil {
		cancel()
	}
	l.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { l.cut(context.Cause(ctx)) })
	defer stop()
	err := l.receive(ctx, address)
	l.cut(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// dial opens the connection to address and stores it, so that cut can close it. If the link was cut
// meanwhile, dial returns the reason as an error.
func (l *link) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := l.o.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to the primary: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	if l.why != nil {
		_ = conn.Close() // the link was cut in the meantime
		return nil, l.why
	}
	l.received()
	return conn, nil
}

// receive connects to address, runs the handshake and passes chunks to the receiver until the link
// ends. It returns the reason why the link has ended.
func (l *link) receive(ctx context.Context, address string) error {
	conn, err := l.dial(ctx, address)
	if err != nil {
		return err
	}
	if isSelf(conn, l.o.Settings().Listens) {
		return errSelf
	}
	r := bufio.NewReaderSize(&meter{conn, l}, readBuffer)
	g := l.to.greeting()
	a, err := greet(conn, &lineReader{r, l.progressed}, &g)
	if err := l.to.answered(a, err); err != nil {
		return err
	}
	if a.redis {
		l.every = true // a Redis has no keepalive chunks
		return l.o.Redis.Follow(ctx, conn, r, a.line)
	}
	ended := make(chan struct{})
	var acker sync.WaitGroup
	acker.Go(func() { l.acknowledge(conn, ended) })
	l.wantAck() // a primary that was just promoted waits for this acknowledgement
	defer acker.Wait()
	defer close(ended)
	err = l.read(r)
	l.cut(err) // cut keeps an acknowledgement that is being sent from blocking on the peer
	return err
}

// read passes chunks from r to the receiver until a chunk is invalid, the receiver returns an
// error, or the connection ends. It returns the error.
func (l *link) read(r *bufio.Reader) error {
	var buf []byte
	for read := 0; ; {
		var err error
		if buf, err = l.readChunk(r, buf[:0]); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the primary closed the connection")
			}
			return err
		}
		c, _, err := NextChunk(buf)
		if err == nil {
			err = l.to.chunk(c)
		}
		if err != nil {
			return err
		}
		if c.Type != ChunkAlive || !l.to.incomplete() {
			l.received() // the time in which a chunk was applied does not count as silence of the primary
		}
		if read += len(buf); r.Buffered() < ChunkHead || read >= maxRound {
			read = 0
			l.to.round()
			l.wantAck()
		}
		if cap(buf) > keptChunk {
			buf = nil
		}
	}
}

// readChunk reads the next chunk into the memory of buf, which must be empty, and returns the chunk.
// It grows buf as bytes arrive, and not at once to the length in the header, which may be wrong. Each
// byte of the payload counts as progress.
func (l *link) readChunk(r *bufio.Reader, buf []byte) ([]byte, error) {
	defer func() { l.every = false }()
	total := ChunkHead
	for len(buf) < total {
		have := len(buf)
		n := min(total-have, max(readBuffer, have))
		buf = slices.Grow(buf, n)[:have+n]
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			return buf, err
		}
		if have == 0 {
			var err error
			if total, err = ChunkLength(buf); err != nil {
				return buf, err
			}
			if l.every = total > ChunkHead; l.every {
				l.progressed()
			}
		}
	}
	return buf, nil
}

// wantAck requests that the progress is sent to the peer soon. It does not block.
func (l *link) wantAck() {
	select {
	case l.acks <- struct{}{}:
	default:
	}
}

// acknowledge sends the progress to the peer when that is requested, and each second, until ended
// is closed or a write fails. If the link does not end within drainFor after a failed write,
// acknowledge cuts it. It runs on its own goroutine, so that the link can be cut while the peer
// does not read.
func (l *link) acknowledge(conn net.Conn, ended <-chan struct{}) {
	tick := l.o.After(ackEvery)
	for {
		select {
		case <-ended:
			return
		case <-l.acks:
		case <-tick:
			tick = l.o.After(ackEvery)
		}
		if _, err := conn.Write(appendAck(nil, l.to.progress())); err != nil {
			// If the peer has closed the connection, its last data says more than the write error,
			// so the link waits for that data.
			select {
			case <-ended:
			case <-l.o.After(drainFor):
				l.cut(fmt.Errorf("acknowledging: %w", err))
			}
			return
		}
	}
}

// appendAck appends to dst the command REPLCONF ACK that acknowledges p.
func appendAck(dst []byte, p progress) []byte {
	words := []string{"REPLCONF", "ACK", strconv.FormatUint(p.applied, 10)}
	if p.hasDurable {
		words = append(words, "FACK", strconv.FormatUint(p.durable, 10))
	}
	return resp.AppendCommand(dst, words...)
}

// These are the reasons to cut a link. errQuiet means that no byte has arrived for repl-timeout.
// errStuck means that a chunk or reply which the primary began has made no progress for repl-timeout,
// although bytes have arrived; see sinceProgress.
var (
	errQuiet = errors.New("the primary is silent (repl-timeout)")
	errStuck = errors.New("the primary does not go on with what it has begun to send (repl-timeout)")
)

// meter reads from the connection of a link, and records when bytes arrive.
type meter struct {
	conn net.Conn
	l    *link
}

// Read reads from the connection, and records that bytes have arrived. If l.every is true, it also
// records them as progress.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.conn.Read(p)
	if n > 0 {
		if m.l.every {
			m.l.received()
		} else {
			m.l.lastByte.Store(int64(m.l.o.Stopwatch()))
		}
	}
	return n, err
}

var errSelf = errors.New("the primary is this server itself")

// isSelf reports whether conn connects this server to itself: both ends of conn have the same IP
// address, and the remote port is one of ports, the ports that this server listens on.
func isSelf(conn net.Conn, ports []int) bool {
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	remote, is := conn.RemoteAddr().(*net.TCPAddr)
	return ok && is && slices.Contains(ports, remote.Port) && remote.IP.Equal(local.IP)
}
