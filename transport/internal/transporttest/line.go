package transporttest

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// This is the turn budget of the line protocol, smaller than a server's.
const (
	turnLines = 1024
	TurnBytes = 64 << 10
)

// LineHandler speaks a protocol of lines that uses every part of the interface between transports
// and sessions. It records every breach of a guarantee in Breaches. Commands:
//
//	echo TEXT   TEXT
//	big N       N bytes
//	refer N     N bytes that lie elsewhere
//	park ID     nothing, until Finish(ID, TEXT); Next is Park
//	wait ID     the same with Wait
//	sync N      "synced N", not before the log has reached N
//	bye         "bye", then Close
type LineHandler struct {
	Refuse        func() []byte // called at every Open if it is not nil; a result that is not nil refuses the client
	OnFeed        func(s *LineSession)
	Regret        func(out []byte) []byte // changes the replies that waited for the barrier Lost
	Lost          uint64                  // the barrier that is lost; 0 if none is
	DurableUpTo   atomic.Uint64
	Ledger        ledger // counts the bytes in memory to which the command refer refers
	OnRefer       func(t *transport.Turn, n int)
	ShortOfMemory atomic.Bool // the result of Pressed

	Opened, Closed, workers, Asked atomic.Int64 // Asked counts calls of Durable

	events  sync.Mutex
	changed sync.Cond // used with events: something for which await waits may have changed

	mu       sync.Mutex
	sessions []*LineSession
	parked   map[string]*LineSession
	syncers  []transport.Peer
	Breaches []string
}

type lineWorker struct{ busy atomic.Bool }

// NewLineHandler returns a handler without sessions.
func NewLineHandler() *LineHandler {
	h := &LineHandler{parked: make(map[string]*LineSession)}
	h.changed.L = &h.events
	return h
}

// await waits until what returns true, and returns true then. It calls what after each event. After
// [Patience] it gives up and returns false.
func (h *LineHandler) await(what func() bool) bool {
	over := false
	end := time.AfterFunc(Patience, func() {
		h.events.Lock()
		defer h.events.Unlock()
		over = true
		h.changed.Broadcast()
	})
	defer end.Stop()
	h.events.Lock()
	defer h.events.Unlock()
	for !over && !what() {
		h.changed.Wait()
	}
	return !over
}

// note makes await call its function again. The caller does not hold mu.
func (h *LineHandler) note() {
	h.events.Lock()
	defer h.events.Unlock()
	h.changed.Broadcast()
}

// Pressed implements transport.Pressed.
func (h *LineHandler) Pressed() bool { return h.ShortOfMemory.Load() }

// NewWorker implements [transport.Handler].
func (h *LineHandler) NewWorker() transport.Worker {
	h.workers.Add(1)
	return &lineWorker{}
}

// Open implements [transport.Handler].
func (h *LineHandler) Open(p transport.Peer) (transport.Session, []byte) {
	if h.Refuse != nil {
		if rejection := h.Refuse(); rejection != nil {
			return nil, rejection
		}
	}
	defer h.note()
	s := &LineSession{h: h, Peer: p}
	h.Opened.Add(1)
	h.mu.Lock()
	h.sessions = append(h.sessions, s)
	h.mu.Unlock()
	return s, nil
}

// Durable implements [transport.Handler].
func (h *LineHandler) Durable(barrier uint64, p transport.Peer) transport.Outcome {
	defer h.note()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Asked.Add(1)
	if h.DurableUpTo.Load() < barrier {
		h.syncers = append(h.syncers, p)
		return transport.Pending
	}
	if barrier == h.Lost {
		return transport.Lost
	}
	return transport.Kept
}

// Synced advances the log and wakes the sessions that wait for it.
func (h *LineHandler) Synced(upTo uint64) {
	h.mu.Lock()
	h.DurableUpTo.Store(upTo)
	waiting := h.syncers
	h.syncers = nil
	h.mu.Unlock()
	for _, p := range waiting {
		p.Wake()
	}
}

// Syncing returns the number of peers that wait for the log.
func (h *LineHandler) Syncing() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.syncers)
}

// IsParked reports whether the command with this id waits.
func (h *LineHandler) IsParked(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.parked[id] != nil
}

// Finish sends the reply to the parked command id.
func (h *LineHandler) Finish(id, text string) {
	h.mu.Lock()
	s := h.parked[id]
	delete(h.parked, id)
	h.mu.Unlock()
	s.mu.Lock()
	s.answer = text + "\n"
	s.mu.Unlock()
	s.Peer.Wake()
}

// Sessions returns the sessions opened so far, in order.
func (h *LineHandler) Sessions() []*LineSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*LineSession(nil), h.sessions...)
}

func (h *LineHandler) breach(format string, args ...any) {
	h.mu.Lock()
	h.Breaches = append(h.Breaches, fmt.Sprintf(format, args...))
	h.mu.Unlock()
}

// LineSession is one client of the line protocol.
type LineSession struct {
	h    *LineHandler
	Peer transport.Peer

	feeding, Gone atomic.Bool
	Feeds         atomic.Int64

	mu     sync.Mutex
	outbox []string
	answer string

	parked transport.Next // the Next of a waiting command: Park or Wait
	Left   []byte         // what the last Feed did not consume
}

// Push queues a line for the client and wakes its session.
func (s *LineSession) Push(text string) {
	s.mu.Lock()
	s.outbox = append(s.outbox, text+"\n")
	s.mu.Unlock()
	s.Peer.Wake()
}

// Closed implements [transport.Session].
func (s *LineSession) Closed() {
	if s.feeding.Load() {
		s.h.breach("Closed during Feed")
	}
	if s.Gone.Swap(true) {
		s.h.breach("Closed twice")
	}
	s.h.Closed.Add(1)
	s.h.note()
}

// Settle implements transport.Settler.
func (s *LineSession) Settle(is transport.Outcome, out []byte, refs []shared.Ref) ([]byte, []shared.Ref) {
	switch is {
	case transport.Kept:
		return out, refs
	case transport.Lost:
		shared.ReleaseAll(refs)
		return s.h.Regret(out), nil
	}
	s.h.breach("Settle before its barrier")
	return out, refs
}

// Feed implements [transport.Session].
func (s *LineSession) Feed(l transport.Worker, in, out []byte) transport.Turn {
	worker := l.(*lineWorker)
	if s.feeding.Swap(true) {
		s.h.breach("two Feeds at once")
	}
	if worker.busy.Swap(true) {
		s.h.breach("a worker lent twice")
	}
	if s.Gone.Load() {
		s.h.breach("Feed after Closed")
	}
	if len(out) != 0 {
		s.h.breach("out is not empty")
	}
	if !bytes.HasPrefix(in, s.Left) {
		s.h.breach("unconsumed input was not handed in again")
	}
	s.Feeds.Add(1)
	if s.h.OnFeed != nil {
		s.h.OnFeed(s)
	}
	turn := s.turn(in, out)
	s.Left = append(s.Left[:0], in[turn.Consumed:]...)
	worker.busy.Store(false)
	s.feeding.Store(false)
	s.h.note()
	return turn
}

func (s *LineSession) turn(in, out []byte) transport.Turn {
	t := transport.Turn{Out: out}
	s.mu.Lock()
	for _, line := range s.outbox {
		t.Out = append(t.Out, line...)
	}
	s.outbox = s.outbox[:0]
	if s.parked != transport.Read && s.answer != "" {
		t.Out = append(t.Out, s.answer...)
		s.answer, s.parked = "", transport.Read
	}
	s.mu.Unlock()
	if t.Next = s.parked; t.Next != transport.Read {
		return t
	}
	for lines := 0; ; lines++ {
		end := bytes.IndexByte(in[t.Consumed:], '\n')
		if end < 0 {
			return t
		}
		if lines >= turnLines || len(t.Out) >= TurnBytes {
			t.Next = transport.Again
			return t
		}
		line := string(in[t.Consumed : t.Consumed+end])
		t.Consumed += end + 1
		if s.command(line, &t); t.Next != transport.Read {
			return t
		}
	}
}

func (s *LineSession) command(line string, t *transport.Turn) {
	name, arg, _ := strings.Cut(line, " ")
	switch name {
	case "echo":
		t.Out = append(append(t.Out, arg...), '\n')
	case "big":
		n, _ := strconv.Atoi(arg)
		t.Out = append(append(t.Out, bytes.Repeat([]byte("x"), n)...), '\n')
	case "refer":
		n, _ := strconv.Atoi(arg)
		if s.h.OnRefer != nil {
			s.h.OnRefer(t, n)
		} else {
			s.h.Refer(t, n)
		}
	case "park", "wait":
		s.parked = transport.Park
		if name == "wait" {
			s.parked = transport.Wait
		}
		t.Next = s.parked
		s.h.mu.Lock()
		s.h.parked[arg] = s
		s.h.mu.Unlock()
	case "sync":
		n, _ := strconv.ParseUint(arg, 10, 64)
		t.Barrier = max(t.Barrier, n)
		t.Out = append(append(append(t.Out, "synced "...), arg...), '\n')
	case "bye":
		t.Out = append(t.Out, "bye\n"...)
		t.Next = transport.Close
	default:
		t.Out = append(t.Out, "what?\n"...)
	}
}

// ledger adds up the numbers of bytes that are passed to Count.
type ledger struct{ Sum atomic.Int64 }

// Count implements shared.Ledger.
func (l *ledger) Count(bytes int64) { l.Sum.Add(bytes) }

// Refer appends to a reply a line of n bytes in memory elsewhere: in a value that is dropped at
// once, so that the ledger of h counts it until it has been sent.
func (h *LineHandler) Refer(t *transport.Turn, n int) {
	value := shared.New(bytes.Repeat([]byte("r"), n), 0)
	shared.Hold(value, &h.Ledger)
	shared.Drop(value, &h.Ledger)
	r := shared.Held(value, &h.Ledger)
	r.At = len(t.Out)
	t.Refs = append(t.Refs, r)
	t.Out = append(t.Out, '\n')
}
