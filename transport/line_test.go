package transport_test

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

// The turn budget of the line protocol, that of a server in small.
const (
	turnLines = 1024
	turnBytes = 64 << 10
)

// lineHandler speaks a protocol of lines, just rich enough to use every part of the
// seam, and notes every breach of a guarantee. Commands:
//
//	echo TEXT   TEXT
//	big N       N bytes
//	refer N     N bytes that lie elsewhere
//	park ID     nothing, until finish(ID, TEXT) answers; Next is Park
//	wait ID     the same with Wait
//	sync N      "synced N", not before the log has reached N
//	bye         "bye", then Close
type lineHandler struct {
	refuse  func() []byte // not nil: asked at every Open, a non-nil answer refuses
	onFeed  func(s *lineSession)
	regret  func(out []byte) []byte // changes what waited for the barrier that is lost
	lost    uint64                  // that barrier; 0: none is
	durable atomic.Uint64
	ledger  ledger // counts what refer refers to
	onRefer func(t *transport.Turn, n int)
	pressed atomic.Bool // what Pressed says

	opened, closed, workers, asked atomic.Int64 // asked: calls of Durable

	events  sync.Mutex
	changed sync.Cond // on events: something that await may wait for

	mu       sync.Mutex
	sessions []*lineSession
	parked   map[string]*lineSession
	syncers  []transport.Peer
	breaches []string
}

type lineWorker struct{ busy atomic.Bool }

func newLineHandler() *lineHandler {
	h := &lineHandler{parked: make(map[string]*lineSession)}
	h.changed.L = &h.events
	return h
}

// await waits until what holds, which is asked after each event. It gives up when patience
// ends.
func (h *lineHandler) await(what func() bool) bool {
	over := false
	end := time.AfterFunc(patience, func() {
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

// note has await look again. The caller does not hold mu.
func (h *lineHandler) note() {
	h.events.Lock()
	defer h.events.Unlock()
	h.changed.Broadcast()
}

// Pressed implements transport.Pressed.
func (h *lineHandler) Pressed() bool { return h.pressed.Load() }

func (h *lineHandler) NewWorker() transport.Worker {
	h.workers.Add(1)
	return &lineWorker{}
}

func (h *lineHandler) Open(p transport.Peer) (transport.Session, []byte) {
	if h.refuse != nil {
		if rejection := h.refuse(); rejection != nil {
			return nil, rejection
		}
	}
	defer h.note()
	s := &lineSession{h: h, peer: p}
	h.opened.Add(1)
	h.mu.Lock()
	h.sessions = append(h.sessions, s)
	h.mu.Unlock()
	return s, nil
}

func (h *lineHandler) Durable(barrier uint64, p transport.Peer) transport.Outcome {
	defer h.note()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked.Add(1)
	if h.durable.Load() < barrier {
		h.syncers = append(h.syncers, p)
		return transport.Pending
	}
	if barrier == h.lost {
		return transport.Lost
	}
	return transport.Kept
}

// synced moves the log forward and wakes the sessions that wait for it.
func (h *lineHandler) synced(upTo uint64) {
	h.mu.Lock()
	h.durable.Store(upTo)
	waiting := h.syncers
	h.syncers = nil
	h.mu.Unlock()
	for _, p := range waiting {
		p.Wake()
	}
}

// syncing returns how many peers wait for the log.
func (h *lineHandler) syncing() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.syncers)
}

// isParked reports whether the command with this id has been reached.
func (h *lineHandler) isParked(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.parked[id] != nil
}

// finish answers the parked command id.
func (h *lineHandler) finish(id, text string) {
	h.mu.Lock()
	s := h.parked[id]
	delete(h.parked, id)
	h.mu.Unlock()
	s.mu.Lock()
	s.answer = text + "\n"
	s.mu.Unlock()
	s.peer.Wake()
}

// all returns the sessions opened so far, in order.
func (h *lineHandler) all() []*lineSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*lineSession(nil), h.sessions...)
}

func (h *lineHandler) breach(format string, args ...any) {
	h.mu.Lock()
	h.breaches = append(h.breaches, fmt.Sprintf(format, args...))
	h.mu.Unlock()
}

// lineSession is one client of the line protocol.
type lineSession struct {
	h    *lineHandler
	peer transport.Peer

	feeding, closed atomic.Bool
	feeds           atomic.Int64

	mu     sync.Mutex
	outbox []string
	answer string

	parked transport.Next // Park or Wait while a command waits
	left   []byte         // what the last Feed did not consume
}

// push leaves a line for the client and wakes its session.
func (s *lineSession) push(text string) {
	s.mu.Lock()
	s.outbox = append(s.outbox, text+"\n")
	s.mu.Unlock()
	s.peer.Wake()
}

func (s *lineSession) Closed() {
	if s.feeding.Load() {
		s.h.breach("Closed during Feed")
	}
	if s.closed.Swap(true) {
		s.h.breach("Closed twice")
	}
	s.h.closed.Add(1)
	s.h.note()
}

// Settle implements transport.Settler.
func (s *lineSession) Settle(is transport.Outcome, out []byte, refs []shared.Ref) ([]byte, []shared.Ref) {
	switch is {
	case transport.Kept:
		return out, refs
	case transport.Lost:
		shared.ReleaseAll(refs)
		return s.h.regret(out), nil
	}
	s.h.breach("Settle before its barrier")
	return out, refs
}

func (s *lineSession) Feed(l transport.Worker, in, out []byte) transport.Turn {
	worker := l.(*lineWorker)
	if s.feeding.Swap(true) {
		s.h.breach("two Feeds at once")
	}
	if worker.busy.Swap(true) {
		s.h.breach("a worker lent twice")
	}
	if s.closed.Load() {
		s.h.breach("Feed after Closed")
	}
	if len(out) != 0 {
		s.h.breach("out is not empty")
	}
	if !bytes.HasPrefix(in, s.left) {
		s.h.breach("unconsumed input was not handed in again")
	}
	s.feeds.Add(1)
	if s.h.onFeed != nil {
		s.h.onFeed(s)
	}
	turn := s.turn(in, out)
	s.left = append(s.left[:0], in[turn.Consumed:]...)
	worker.busy.Store(false)
	s.feeding.Store(false)
	s.h.note()
	return turn
}

func (s *lineSession) turn(in, out []byte) transport.Turn {
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
		if lines >= turnLines || len(t.Out) >= turnBytes {
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

func (s *lineSession) command(line string, t *transport.Turn) {
	name, arg, _ := strings.Cut(line, " ")
	switch name {
	case "echo":
		t.Out = append(append(t.Out, arg...), '\n')
	case "big":
		n, _ := strconv.Atoi(arg)
		t.Out = append(append(t.Out, bytes.Repeat([]byte("x"), n)...), '\n')
	case "refer":
		n, _ := strconv.Atoi(arg)
		if s.h.onRefer != nil {
			s.h.onRefer(t, n)
		} else {
			s.h.refer(t, n)
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
