package session

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"sync"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Primary runs commands that a Redis sends to its replicas, on a session without a socket that
// nobody sees. They run whatever the role of this server is, as a user who may do everything, and
// go on in a pause. It is used by one goroutine at a time.
type Primary struct {
	session *Session
	caller  *caller
	worker  *Worker
	in, out []byte
	written uint64 // up to which position of the log Write has been called
	db      int    // which the next command of a transaction would run in
}

// OpenPrimary makes one. from is where the commands come from.
func (e *Engine) OpenPrimary(from net.Addr) *Primary {
	p := &Primary{caller: &caller{from: from, wake: make(chan struct{}, 1)}, worker: e.takeWorker()}
	p.session = e.newSession(p.caller, 2, acl.NewUsers(e.Commands).Default)
	p.session.Mark(command.MarkPrimary, true)
	return p
}

// Run runs a command in a database, those of a transaction each in its own. [Primary.Write] has to
// be called soon after. The error is the reply if that is one, or the first in the reply of EXEC.
// If ctx ends before, the command may still run, and p must be closed.
func (p *Primary) Run(ctx context.Context, db int, args [][]byte) error {
	if p.session.Marks&command.MarkQueuing == 0 {
		p.session.Database.Store(int32(db))
		p.db = db
	}
	if p.db != db && !ends(args[0]) {
		if err := p.feed(ctx, [][]byte{[]byte("SELECT"), strconv.AppendInt(nil, int64(db), 10)}); err != nil {
			return err
		}
		p.db = db
	}
	return p.feed(ctx, args)
}

// ends reports whether a command ends a transaction, so that it does not matter which database is
// selected.
func ends(command []byte) bool {
	return bytes.EqualFold(command, []byte("exec")) || bytes.EqualFold(command, []byte("discard"))
}

// feed runs a command in the database that is selected.
func (p *Primary) feed(ctx context.Context, args [][]byte) error {
	s := p.session
	p.in = resp.AppendCommand(p.in[:0], args...)
	p.worker.Actor = 0
	var failed error
	for in, replied := p.in, false; ; {
		turn := s.Feed(p.worker, in, p.out[:0])
		in, p.out = in[turn.Consumed:], turn.Out
		if turn.Barrier >= p.written+turnEffects { // much waits in memory
			p.Write()
		}
		s.forgetPending()
		release(turn.Refs)
		if failed == nil && !replied {
			failed = replyError(turn.Out, args[0])
		}
		replied = replied || len(turn.Out) > 0
		switch {
		case turn.Next == transport.Close:
			return ErrNoReply
		case turn.Next == transport.Read:
			p.shrink()
			return failed
		case turn.Next == transport.Again:
			if err := context.Cause(ctx); err != nil {
				return err //nolint:wrapcheck // the caller's own
			}
			continue
		}
		s.wakeAfterPause()
		if err := p.caller.wait(ctx); err != nil {
			return err
		}
	}
}

// Write has the log write what has been done so far, by others than p, too. Whether that is
// kept, who keeps files knows.
func (p *Primary) Write() {
	log := p.session.engine.Options.Persistence
	if log == nil {
		return
	}
	if at := log.Position(); at > p.written {
		log.Await(at, nil)
		p.written = at
	}
}

// replyError is the error in the reply to a command, nil if there is none.
func replyError(reply []byte, command []byte) error {
	if at := bytes.Index(reply, []byte("\r\n-")); at >= 0 && bytes.EqualFold(command, []byte("exec")) {
		reply = reply[at+2:] // a value may look like one: then more is read again than need be
	}
	if len(reply) == 0 || reply[0] != '-' {
		return nil
	}
	text, _, _ := bytes.Cut(reply[1:], []byte("\r\n"))
	return errors.New(string(text))
}

// shrink gives back what a large command has needed.
func (p *Primary) shrink() {
	if cap(p.in) > MaxExecuted {
		p.in = nil
	}
	if cap(p.out) > MaxExecuted {
		p.out = nil
	}
}

// Close ends the session.
func (p *Primary) Close() {
	p.Write()
	s := p.session
	s.stopWaiting()
	s.engine.Server.Closed(&s.Client)
	s.engine.returnWorker(p.worker)
}

// primaryUser is what CLIENT LIST calls the user of the primary, as Redis does.
const primaryUser = "(superuser)"

// Link shows a connection to the primary that is followed as a client, until it is closed. It
// counts for maxclients, and for no address. CLIENT KILL closes it.
func (e *Engine) Link(conn net.Conn) net.Conn {
	u := acl.NewUsers(e.Commands).Default
	u.Name = primaryUser
	l := &link{Conn: conn}
	l.session = e.newSession(linkPeer{conn, e}, 2, u)
	l.session.Primary = true
	l.session.outboxClosed = true // nobody tells a primary anything
	e.clients.mu.Lock()
	defer e.clients.mu.Unlock()
	e.clients.enter(l.session)
	return l
}

// link is a connection to a primary.
type link struct {
	net.Conn
	session *Session
	gone    sync.Once
}

func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n > 0 {
		l.session.active.Store(int64(l.session.engine.Options.Now()))
	}
	return n, err
}

func (l *link) Close() error {
	l.gone.Do(func() { l.session.engine.clients.remove(l.session) })
	return l.Conn.Close()
}

// linkPeer is the end of the session of a link.
type linkPeer struct {
	net.Conn
	engine *Engine
}

// Wake does nothing: the session is never fed.
func (linkPeer) Wake() {}

// Abort closes the connection beside the caller, who may be on a loop: TLS says goodbye first.
func (p linkPeer) Abort() { p.engine.Spawn(func() { _ = p.Close() }) }

// Held is nothing: what has been read is with who follows.
func (linkPeer) Held() (in, out int64) { return 0, 0 }
