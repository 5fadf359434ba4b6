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
	// ackEvery is how often a replica acknowledges while it receives nothing.
	ackEvery = time.Second
	// drainFor is how long a connection is still read after a write to it has failed.
	drainFor = 5 * time.Second
	// readBuffer is the size of the read buffer, in bytes. It is also the least growth of the
	// buffer of a chunk.
	readBuffer = 64 << 10
	// maxRound is the number of bytes after which a round ends although more has arrived.
	maxRound = 256 << 10
	// keptChunk is the largest buffer of a chunk that is reused for the next one.
	keptChunk = 4 << 20
)

// progress is the offset up to which a replica has applied the stream, and up to which it is
// durable.
type progress struct {
	applied, durable uint64
	hasDurable       bool
}

// receiver receives the events of a link. One goroutine makes all calls.
type receiver interface {
	// greeting returns what to send next in the handshake.
	greeting() greeting
	// answered receives the answer of the peer, including an error that it sent.
	answered(a answer, err error) error
	// chunk receives the next chunk, whose payload is valid until chunk returns.
	chunk(c Chunk) error
	// round is called when no more data is buffered, or much has been read since the last call.
	round()
	// incomplete reports whether more has to arrive: of the state, or of a frame.
	incomplete() bool
	// progress may be called from any goroutine.
	progress() progress
}

// link is one connection to a primary. Any goroutine may call cut, silence and sinceProgress.
type link struct {
	o            *Options
	to           receiver
	cancel       context.CancelFunc
	lastByte     atomic.Int64  // stopwatch reading when the last byte arrived
	lastProgress atomic.Int64  // stopwatch reading at the last progress: see sinceProgress
	every        bool          // every byte counts as progress; used by the goroutine of run only
	acks         chan struct{} // capacity one: an acknowledgement is to be sent

	mu   sync.Mutex // guards the fields below
	conn net.Conn   // nil until it is dialed
	why  error      // why the link was cut; nil before
}

func newLink(o *Options, to receiver) *link {
	l := &link{o: o, to: to, acks: make(chan struct{}, 1), cancel: func() {}}
	l.received()
	return l
}

// cut ends the link, unless it was cut before. run then returns why.
func (l *link) cut(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why != nil {
		return
	}
	l.why = why
	l.cancel()
	if l.conn != nil {
		_ = l.conn.Close() // the link has ended, whatever Close returns
	}
}

// silence returns how long ago the last byte arrived.
func (l *link) silence() time.Duration {
	return l.o.Stopwatch() - time.Duration(l.lastByte.Load())
}

// sinceProgress returns for how long the primary has made no progress. Progress is a reply line,
// or a chunk that is no keepalive. A keepalive counts, too, if the receiver has nothing
// incomplete.
func (l *link) sinceProgress() time.Duration {
	return l.o.Stopwatch() - time.Duration(l.lastProgress.Load())
}

// overdue returns why the link is to be cut with that repl-timeout, or nil. A timeout of 0 never
// cuts.
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

// received records that bytes arrived and are progress.
func (l *link) received() {
	now := int64(l.o.Stopwatch())
	l.lastByte.Store(now)
	l.lastProgress.Store(now)
}

func (l *link) progressed() { l.lastProgress.Store(int64(l.o.Stopwatch())) }

// run connects and receives until the link ends, and returns why it ended.
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

// dial opens the connection. cut closes it.
func (l *link) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := l.o.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to the primary: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	if l.why != nil {
		_ = conn.Close() // the link was cut meanwhile
		return nil, l.why
	}
	l.received()
	return conn, nil
}

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
	l.cut(err) // so that an acknowledgement under way does not block on the peer
	return err
}

// read passes chunks on until one is invalid or the connection ends.
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
			l.received() // the time that applying took does not count as silence of the primary
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

// readChunk appends a chunk to buf. It grows buf as bytes arrive, and not at once to the length
// in the header, which may be wrong. Each byte of a payload is progress.
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

// wantAck requests that the progress is sent soon. It does not block.
func (l *link) wantAck() {
	select {
	case l.acks <- struct{}{}:
	default:
	}
}

// acknowledge sends the progress when requested, and each second. It runs on a goroutine of its
// own, because a peer that does not read must not keep the link from being cut.
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
			// The last data of a peer that closed the connection tells more than the write error.
			select {
			case <-ended:
			case <-l.o.After(drainFor):
				l.cut(fmt.Errorf("acknowledging: %w", err))
			}
			return
		}
	}
}

func appendAck(dst []byte, p progress) []byte {
	words := []string{"REPLCONF", "ACK", strconv.FormatUint(p.applied, 10)}
	if p.hasDurable {
		words = append(words, "FACK", strconv.FormatUint(p.durable, 10))
	}
	return resp.AppendCommand(dst, words...)
}

// Reasons to cut a link: nothing arrived, or only keepalives arrived while more was due.
var (
	errQuiet = errors.New("the primary is silent (repl-timeout)")
	errStuck = errors.New("the primary does not go on with what it has begun to send (repl-timeout)")
)

// meter is the reader of a link's connection. It records when bytes arrive.
type meter struct {
	conn net.Conn
	l    *link
}

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

// errSelf is why a node does not follow itself.
var errSelf = errors.New("the primary is this server itself")

// isSelf reports whether conn connects this machine to itself, at one of the ports that this
// server listens on.
func isSelf(conn net.Conn, ports []int) bool {
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	remote, is := conn.RemoteAddr().(*net.TCPAddr)
	return ok && is && slices.Contains(ports, remote.Port) && remote.IP.Equal(local.IP)
}
