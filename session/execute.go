package session

import (
	"context"
	"errors"
	"net"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// These are the errors of [Engine.Execute]. After ErrWaits and ErrNeedsConnection the command has
// not run. After ErrStopping it may have begun and may still run.
var (
	ErrWaits           = errors.New("the command waits for others")
	ErrNeedsConnection = errors.New("the command is about the connection that sends it")
	ErrNoReply         = errors.New("the command has no reply")
	ErrReplyTooLong    = errors.New("the reply is too long")
	ErrStopping        = errors.New("the server is stopping")
)

// MaxExecuted is the maximum number of bytes in a reply of [Engine.Execute].
const MaxExecuted = 1 << 20

// clientName is the client name that ACL LOG and SLOWLOG show for a command of [Engine.Execute].
const clientName = "admin-port"

// Execute runs one command, args, as the user u in the database db, on a session without a
// socket. It returns the reply in RESP3. from is the caller's address, for the log and ACL LOG. A
// command that may wait for other clients is refused with [ErrWaits], a command about its
// connection with [ErrNeedsConnection]. After [ErrNoReply] and [ErrReplyTooLong] the command may
// have had effects. If ctx ends before the reply, Execute returns the cause, and the command may
// still run. After [Engine.EndExecutions] it runs nothing and returns [ErrStopping].
func (e *Engine) Execute(ctx context.Context, u *acl.User, from net.Addr, db int, args [][]byte) ([]byte, error) {
	if err := e.unfit(args); err != nil {
		return nil, err
	}
	ctx, end, ok := e.beginExecution(ctx)
	if !ok {
		return nil, ErrStopping
	}
	defer end()
	p := &caller{from: from, wake: make(chan struct{}, 1)}
	s := e.newSession(p, 3, u)
	s.Identify(command.Identity{Name: clientName})
	s.Database.Store(int32(db))
	defer e.Server.Closed(&s.Client)
	defer s.stopWaiting()
	return s.feedUntilAnswered(ctx, p, resp.AppendCommand(nil, args...))
}

// unfit returns the error if [Engine.Execute] may not run the command args, nil if it may. It also
// returns nil for an unknown command, to which dispatch replies with an error.
func (e *Engine) unfit(args [][]byte) error {
	if len(args) == 0 {
		return nil
	}
	cmd := e.Commands.Lookup(args[0])
	if cmd != nil && len(args) > 1 && cmd.Sub != nil {
		cmd = cmd.Subcommand(args[1])
	}
	switch {
	case cmd == nil: // without such a command, dispatch replies with the error
		return nil
	case cmd.Flags&command.FlagConnection != 0:
		return ErrNeedsConnection
	case cmd.Flags&command.FlagBlocking != 0 || cmd.Waits != nil && cmd.Waits(&e.Server, args):
		return ErrWaits // the command would wait for an event that may never come
	}
	return nil
}

// beginExecution registers a command and returns its context, which is derived from ctx.
// [Engine.EndExecutions] cancels this context and waits until end was called. ok is false if no
// more commands may begin; then end is nil.
func (e *executions) beginExecution(ctx context.Context) (of context.Context, end func(), ok bool) {
	e.executionsMu.Lock()
	defer e.executionsMu.Unlock()
	if e.executionsEnded {
		return nil, nil, false
	}
	of, cancel := context.WithCancelCause(ctx)
	e.lastExecution++
	id := e.lastExecution
	if e.cancels == nil {
		e.cancels = make(map[int64]context.CancelCauseFunc)
	}
	e.cancels[id] = cancel
	e.executing.Add(1)
	return of, func() {
		e.executionsMu.Lock()
		delete(e.cancels, id)
		e.executionsMu.Unlock()
		cancel(nil)
		e.executing.Done()
	}, true
}

// Executing returns the number of commands that [Engine.Execute] is running. Any goroutine may
// call it.
func (e *Engine) Executing() int {
	e.executionsMu.Lock()
	defer e.executionsMu.Unlock()
	return len(e.cancels)
}

// EndExecutions lets [Engine.Execute] begin no more commands, cancels the waits of the running
// ones with [ErrStopping], and waits until all of them have returned.
func (e *Engine) EndExecutions() {
	e.executionsMu.Lock()
	e.executionsEnded = true
	for _, cancel := range e.cancels {
		cancel(ErrStopping)
	}
	e.executionsMu.Unlock()
	e.executing.Wait()
}

// feedUntilAnswered feeds in, the bytes of one command, to the session until the reply may be
// returned, and returns the reply. If the session closes, the output until then is the reply. err
// is the cause if ctx ends first, [ErrNoReply] if there is no output, or [ErrReplyTooLong].
func (s *Session) feedUntilAnswered(ctx context.Context, p *caller, in []byte) (reply []byte, err error) {
	for {
		next, out, err := s.feedOnce(ctx, p, &in)
		if err != nil {
			return nil, err
		}
		if len(reply)+len(out) > MaxExecuted {
			return nil, ErrReplyTooLong
		}
		reply = append(reply, out...)
		switch {
		case next == transport.Read && len(reply) == 0, next == transport.Close:
			if len(reply) == 0 {
				return nil, ErrNoReply
			}
			return reply, nil
		case next == transport.Read:
			return reply, nil
		case next == transport.Again:
			if err := context.Cause(ctx); err != nil {
				return nil, err //nolint:wrapcheck // the caller's own
			}
			continue
		}
		s.wakeAfterPause()
		if err := p.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// wakeAfterPause finishes the wait of the session at the end of a pause, if the session waits for
// that. It is for sessions that are not registered: the end of a pause only wakes registered
// sessions.
func (s *Session) wakeAfterPause() {
	w := s.wait.Load()
	if w == nil || !w.RunAgain {
		return
	}
	if !s.engine.AfterPause(func(proceed bool) {
		if proceed {
			w.Finish(nil)
		}
	}) {
		w.Finish(nil)
	}
}

// feedOnce feeds in to the session once, removes the consumed bytes from in, and waits until the
// reply may be returned. It returns how the session continues, and the output of this turn. If
// ctx ends before, the error is the cause. A reply of more than [MaxExecuted] bytes is released,
// and the error is [ErrReplyTooLong].
func (s *Session) feedOnce(ctx context.Context, p *caller, in *[]byte) (transport.Next, []byte, error) {
	w := s.engine.takeWorker()
	w.Actor = 0
	turn := s.Feed(w, *in, nil)
	s.engine.returnWorker(w)
	*in = (*in)[turn.Consumed:]
	if turn.Barrier != 0 {
		is := s.engine.Durable(turn.Barrier, p)
		for is == transport.Pending {
			if err := p.wait(ctx); err != nil {
				release(turn.Refs)
				s.forgetPending()
				return turn.Next, nil, err
			}
			is = s.engine.Durable(turn.Barrier, p)
		}
		turn.Out, turn.Refs = s.Settle(is, turn.Out, turn.Refs)
	}
	size := len(turn.Out)
	for i := range turn.Refs {
		size += len(turn.Refs[i].Bytes)
	}
	if size > MaxExecuted {
		release(turn.Refs)
		return turn.Next, nil, ErrReplyTooLong
	}
	return turn.Next, turn.Whole(), nil
}

func release(refs []shared.Ref) {
	for i := range refs {
		refs[i].Release()
	}
}

// caller is the [transport.Peer] of a session without a socket.
type caller struct {
	from net.Addr
	wake chan struct{} // receives a value when the session is woken; has a buffer of one
}

func (p *caller) wait(ctx context.Context) error {
	select {
	case <-p.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx) //nolint:wrapcheck // the caller's own
	}
}

// Wake ends the present or the next call of wait. It does not block.
func (p *caller) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *caller) Abort()               { p.Wake() }
func (p *caller) RemoteAddr() net.Addr { return p.from }
func (p *caller) LocalAddr() net.Addr  { return p.from }
func (*caller) Held() (in, out int64)  { return 0, 0 }
