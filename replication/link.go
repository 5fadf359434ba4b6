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
	// ackEvery is how often a replica says what it has applied if nothing happens.
	ackEvery = time.Second
	// lastWords is for how long a connection is read that cannot be written to.
	lastWords = 5 * time.Second
	// readBuffer is how much is read from a primary at once. It is also by how much the
	// buffer of a chunk grows at least.
	readBuffer = 64 << 10
	// roundMost is after how many bytes a round ends although more is there.
	roundMost = 256 << 10
	// keptChunk is the largest buffer of a chunk that is kept for the next.
	keptChunk = 4 << 20
)

// progress is what a replica has applied and has on its disk.
type progress struct {
	applied, durable uint64
	hasDurable       bool
}

// receiver is told what comes over a link, by one goroutine.
type receiver interface {
	// greeting is what is said next.
	greeting() greeting
	// answered is told how the peer answered, an error that it sent included.
	answered(a answer, err error) error
	// chunk takes the next chunk, whose payload is valid until it returns.
	chunk(c Chunk) error
	// round says that there is nothing more to be read now, or that much was.
	round()
	// owed reports whether more has to come: the state, or the rest of a frame.
	owed() bool
	// progress may be called from any goroutine.
	progress() progress
}

// link is one connection to a primary. Any goroutine may call cut, silence and standstill.
type link struct {
	o      *Options
	to     receiver
	cancel context.CancelFunc
	heard  atomic.Int64  // stopwatch reading at the last byte that came
	moved  atomic.Int64  // and at the last progress: see standstill
	every  bool          // every byte is progress; for the goroutine of run
	acks   chan struct{} // room for one: something is to be acknowledged

	mu   sync.Mutex // guards what follows
	conn net.Conn   // nil until it is dialled
	why  error      // why the link was cut; nil while it was not
}

func newLink(o *Options, to receiver) *link {
	l := &link{o: o, to: to, acks: make(chan struct{}, 1), cancel: func() {}}
	l.hears()
	return l
}

// cut ends the link, if nobody has before. run returns why.
func (l *link) cut(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why != nil {
		return
	}
	l.why = why
	l.cancel()
	if l.conn != nil {
		_ = l.conn.Close() // the link has ended, whatever that says
	}
}

// silence is for how long nothing has come.
func (l *link) silence() time.Duration {
	return l.o.Stopwatch() - time.Duration(l.heard.Load())
}

// standstill is for how long the primary has not gone on: neither with a line of its answers,
// nor with a chunk that is more than a sign of life. With one it goes on if it owes nothing.
func (l *link) standstill() time.Duration {
	return l.o.Stopwatch() - time.Duration(l.moved.Load())
}

// overdue says why the link is to be cut, if it is, with that repl-timeout; 0 is none.
func (l *link) overdue(most time.Duration) error {
	switch {
	case most <= 0:
	case l.silence() > most:
		return errQuiet
	case l.standstill() > most:
		return errStuck
	}
	return nil
}

// hears notes that something came, and moves that it is progress.
func (l *link) hears() {
	now := int64(l.o.Stopwatch())
	l.heard.Store(now)
	l.moved.Store(now)
}

func (l *link) moves() { l.moved.Store(int64(l.o.Stopwatch())) }

// run connects and receives until the link ends, and returns why.
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

// dial opens the connection. It is closed by cut.
func (l *link) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := l.o.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to the primary: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	if l.why != nil {
		_ = conn.Close() // it came too late
		return nil, l.why
	}
	l.hears()
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
	a, err := greet(conn, &lines{r, l.moves}, &g)
	if err := l.to.answered(a, err); err != nil {
		return err
	}
	if a.redis {
		l.every = true // it has ways of its own
		return l.o.Redis.Follow(ctx, conn, r, a.line)
	}
	ended := make(chan struct{})
	var acker sync.WaitGroup
	acker.Go(func() { l.acknowledge(conn, ended) })
	l.wantAck() // a primary that has just taken over waits for it
	defer acker.Wait()
	defer close(ended)
	err = l.read(r)
	l.cut(err) // so that an acknowledgement under way does not wait for the peer
	return err
}

// read passes chunks on until one is wrong or the connection ends.
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
		if c.Type != ChunkAlive || !l.to.owed() {
			l.hears() // the time that it took here is not the primary's silence
		}
		if read += len(buf); r.Buffered() < ChunkHead || read >= roundMost {
			read = 0
			l.to.round()
			l.wantAck()
		}
		if cap(buf) > keptChunk {
			buf = nil
		}
	}
}

// readChunk appends a chunk to buf. It makes room as the bytes come, not because of the
// length that the chunk claims to have. Each byte of a payload is progress.
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
				l.moves()
			}
		}
	}
	return buf, nil
}

// wantAck has the progress sent soon. It does not block.
func (l *link) wantAck() {
	select {
	case l.acks <- struct{}{}:
	default:
	}
}

// acknowledge sends the progress when it is asked to, and each second. It has a goroutine
// of its own, since a peer that reads nothing must not keep the link from being cut.
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
			// What the peer has sent before it closed the connection says more.
			select {
			case <-ended:
			case <-l.o.After(lastWords):
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

// Why a link was cut over which nothing came, or nothing but signs of life where more was due.
var (
	errQuiet = errors.New("the primary is silent (repl-timeout)")
	errStuck = errors.New("the primary does not go on with what it has begun to send (repl-timeout)")
)

// meter notes when bytes come.
type meter struct {
	conn net.Conn
	l    *link
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.conn.Read(p)
	if n > 0 {
		if m.l.every {
			m.l.hears()
		} else {
			m.l.heard.Store(int64(m.l.o.Stopwatch()))
		}
	}
	return n, err
}

// errSelf is why a node does not follow itself.
var errSelf = errors.New("the primary is this server itself")

// isSelf reports whether conn leads from this machine to one of those ports of it, which this
// server listens on.
func isSelf(conn net.Conn, ports []int) bool {
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	remote, is := conn.RemoteAddr().(*net.TCPAddr)
	return ok && is && slices.Contains(ports, remote.Port) && remote.IP.Equal(local.IP)
}
