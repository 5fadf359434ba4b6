package session

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"sync"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Primary runs commands that a followed Redis sends to its replicas. It has a session without a
// socket, which is not in CLIENT LIST. The commands run regardless of this server's role and of
// pauses, as a user with all permissions. Only one goroutine at a time may use a Primary.
type Primary struct {
	session *Session
	caller  *caller
	worker  *Worker
	in, out []byte
	written uint64 // the position of the log that the last call of Write has made the log write
	db      int    // the database in which the next command of a transaction would run
}

// OpenPrimary returns a Primary for commands that come from the address from. The caller must
// close it.
func (e *Engine) OpenPrimary(from net.Addr) *Primary {
	p := &Primary{caller: &caller{from: from, wake: make(chan struct{}, 1)}, worker: e.takeWorker()}
	p.session = e.newSession(p.caller, 2, acl.NewUsers(e.Commands).Default)
	p.session.Mark(command.MarkPrimary, true)
	return p
}

// Run runs the command args in the database db, and waits for its reply. Commands of a
// transaction may each have another database. [Primary.Write] has to be called soon after. The
// error is the reply if that is an error, the first error in the reply of EXEC, or [ErrNoReply] if
// the command has closed the session. If ctx ends before the reply, Run returns the cause, the
// command may still run, and p must be closed.
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

// ends reports whether command ends a transaction (EXEC, DISCARD). Such a command does not depend
// on the selected database.
func ends(command []byte) bool {
	return bytes.EqualFold(command, []byte("exec")) || bytes.EqualFold(command, []byte("discard"))
}

// feed runs the command args in the selected database and waits for its reply. It returns the
// first error reply, [ErrNoReply] if the session has closed, or the cause of the end of ctx.
func (p *Primary) feed(ctx context.Context, args [][]byte) error {
	s := p.session
	p.in = resp.AppendCommand(p.in[:0], args...)
	p.worker.Actor = 0
	var failed error
	for in, replied := p.in, false; ; {
		turn := s.Feed(p.worker, in, p.out[:0])
		in, p.out = in[turn.Consumed:], turn.Out
		if turn.Barrier >= p.written+turnEffects { // many bytes of effects wait in memory
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

// Write makes the log write everything up to now, including effects of other sessions. It does
// not report faults, because the persistence manager handles them.
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

// replyError returns the error in the reply to command, nil if there is none. For EXEC it returns
// the first error among the replies of the transaction.
func replyError(reply []byte, command []byte) error {
	if at := bytes.Index(reply, []byte("\r\n-")); at >= 0 && bytes.EqualFold(command, []byte("exec")) {
		reply = reply[at+2:] // a value may contain the same bytes: then Run returns an error that the command did not have
	}
	if len(reply) == 0 || reply[0] != '-' {
		return nil
	}
	text, _, _ := bytes.Cut(reply[1:], []byte("\r\n"))
	return errors.New(string(text))
}

func (p *Primary) shrink() {
	if cap(p.in) > MaxExecuted {
		p.in = nil
	}
	if cap(p.out) > MaxExecuted {
		p.out = nil
	}
}

// Close makes the log write everything, and ends the session. It must be called once.
func (p *Primary) Close() {
	p.Write()
	s := p.session
	s.stopWaiting()
	s.engine.Server.Closed(&s.Client)
	s.engine.returnWorker(p.worker)
}

// primaryUser is the name of the primary's user in CLIENT LIST, as in Redis.
const primaryUser = "(superuser)"

// Link lists conn, a connection to the followed primary, as a client, and returns a connection to
// use instead of conn. The client is listed until the returned connection is closed. It counts for
// maxclients, but for no address. CLIENT KILL closes conn.
func (e *Engine) Link(conn net.Conn) net.Conn {
	u := acl.NewUsers(e.Commands).Default
	u.Name = primaryUser
	l := &link{Conn: conn}
	l.session = e.newSession(linkPeer{conn, e}, 2, u)
	l.session.Primary = true
	l.session.outboxClosed = true // a primary gets no messages
	e.clients.mu.Lock()
	defer e.clients.mu.Unlock()
	e.clients.enter(l.session)
	return l
}

// link is a connection to a primary. Reads update the client's last activity.
type link struct {
	net.Conn
	session *Session
	gone    sync.Once
}

// Read reads from the connection, and records the activity of the client.
func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n > 0 {
		l.session.active.Store(int64(l.session.engine.Options.Now()))
	}
	return n, err
}

// Close removes the client from the list of clients, and closes the connection. It may be called more
// than once.
func (l *link) Close() error {
	l.gone.Do(func() { l.session.engine.clients.remove(l.session) })
	return l.Conn.Close()
}

// linkPeer is the [transport.Peer] of the session of a link.
type linkPeer struct {
	net.Conn
	engine *Engine
}

// Wake does nothing, because no transport feeds the session.
func (linkPeer) Wake() {}

// Abort closes the connection on another goroutine, since the caller may be an event loop, and
// closing a TLS connection sends a close notification first.
func (p linkPeer) Abort() { p.engine.Spawn(func() { _ = p.Close() }) }

// Held returns 0 and 0, because the replication link has the data that was read.
func (linkPeer) Held() (in, out int64) { return 0, 0 }
