package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

const (
	// largeInput is from how many bytes on an input is not to be kept by a worker that has
	// split it.
	largeInput = 64 << 10
)

// split fills l.ahead from in. It stops at the end of the complete commands, at a
// protocol error, which it returns, and at what a worker has room for. swallowed is
// how far the guard has come beyond the last command.
func (s *Session) split(l *Worker, in []byte) (swallowed int, err resp.Error) {
	limits, most := s.frameLimits()
	if cap(l.room) > command.KeptRequestWords {
		resp.Recycle(l.room)
		l.room = make([][]byte, 0, command.RequestWords)
	}
	room, n, at := l.room, 0, 0
	for n < most {
		args, used, fault := s.guard.Next(in[at:], room[len(room):], limits)
		at += used
		swallowed = at
		if fault != "" && fault.Refuses() {
			l.slots[n] = request{refused: fault, size: used, end: at}
			n++
			continue
		}
		if fault != "" || len(args) == 0 {
			err = fault
			break
		}
		a := &l.slots[n]
		n++
		a.cmd, a.args, a.policyKey, a.size, a.end = s.engine.Commands.Lookup(args[0]), args, nil, used, at
		if len(room)+len(args) > cap(room) {
			l.room = args[:0] // it has outgrown the worker's room, whose place it takes
			break
		}
		room = room[:len(room)+len(args)]
		if cap(room)-len(room) < command.RequestWords/8 {
			break
		}
	}
	l.requests = l.slots[:n]
	return swallowed, err
}

// frameLimits returns what the client may send, and how many commands may be split
// before the first of them runs: only one while the client has yet to authenticate,
// since that changes the limits for what follows.
func (s *Session) frameLimits() (limits *resp.Limits, most int) {
	if s.Admitted() {
		return &s.engine.Limits().Frame, command.MaxRequests
	}
	return &s.engine.Limits().FrameUnauth, 1
}

// prefetch tells the store which keys are about to be used.
func (l *Worker) prefetch(db int) {
	l.Keys = l.Keys[:0]
	for i := range l.requests {
		a := &l.requests[i]
		switch {
		case a.cmd == nil || len(a.args) < 2:
		case a.cmd.Keys.First == 1:
			l.Keys = append(l.Keys, a.args[1])
		case a.cmd.Keys.Policy && len(a.args) > 2:
			from := len(l.policyKeys)
			l.policyKeys = a.cmd.Keys.AppendPolicyKey(l.policyKeys, a.args)
			a.policyKey = l.policyKeys[from:len(l.policyKeys):len(l.policyKeys)]
			l.Keys = append(l.Keys, a.policyKey)
		}
	}
	if len(l.Keys) > 1 {
		l.Store.Prefetch(db, l.Keys)
	}
}

// takeArgs is command.CloneArgs for arguments of a command that has been split. Those of one that
// has outgrown the worker's room keep theirs, and the worker gets another.
func (l *Worker) takeArgs(args [][]byte) [][]byte {
	if cap(l.room) <= command.KeptRequestWords || len(args) == 0 || &l.room[:1][0] != &args[0] {
		return command.CloneArgs(args)
	}
	l.room = make([][]byte, 0, command.RequestWords)
	command.CopyArgs(args, args)
	return args
}

// forgetInput lets go of the input that was split last, which arguments point into.
func (l *Worker) forgetInput() {
	clear(l.room[:cap(l.room)])
	l.policyKeys = nil
	clear(l.slots[:])
	l.ctx.Args = nil
	l.requests = nil
	clear(l.Keys[:cap(l.Keys)])
}
