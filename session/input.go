package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

const (
	// largeInput is from how many bytes on an input is not to be kept by a lane that has
	// split it.
	largeInput = 64 << 10
)

// split fills l.ahead from in. It stops at the end of the complete commands, at a
// protocol error, which it returns, and at what a lane has room for. swallowed is
// how far the guard has come beyond the last command.
func (s *Session) split(l *Lane, in []byte) (swallowed int, err resp.Error) {
	limits, most := s.frameLimits()
	if cap(l.args) > command.AheadKeep {
		resp.Recycle(l.args)
		l.args = make([][]byte, 0, command.AheadArgs)
	}
	room, n, at := l.args, 0, 0
	for n < most {
		args, used, fault := s.guard.Next(in[at:], room[len(room):], limits)
		at += used
		swallowed = at
		if fault != "" && fault.Refuses() {
			l.slots[n] = ahead{refused: fault, size: used, end: at}
			n++
			continue
		}
		if fault != "" || len(args) == 0 {
			err = fault
			break
		}
		a := &l.slots[n]
		n++
		a.cmd, a.args, a.size, a.end = s.engine.Commands.Lookup(args[0]), args, used, at
		if len(room)+len(args) > cap(room) {
			l.args = args[:0] // it has outgrown the lane's room, whose place it takes
			break
		}
		room = room[:len(room)+len(args)]
		if cap(room)-len(room) < command.AheadArgs/8 {
			break
		}
	}
	l.ahead = l.slots[:n]
	return swallowed, err
}

// frameLimits returns what the client may send, and how many commands may be split
// before the first of them runs: only one while the client has yet to authenticate,
// since that changes the limits for what follows.
func (s *Session) frameLimits() (limits *resp.Limits, most int) {
	if s.Admitted() {
		return &s.engine.Limits().Frame, command.AheadMost
	}
	return &s.engine.Limits().FrameUnauth, 1
}

// prefetch tells the store which keys are about to be used.
func (l *Lane) prefetch(db int) {
	l.Keys = l.Keys[:0]
	for i := range l.ahead {
		a := &l.ahead[i]
		if a.cmd != nil && a.cmd.Keys.First == 1 && len(a.args) > 1 {
			l.Keys = append(l.Keys, a.args[1])
		}
	}
	if len(l.Keys) > 1 {
		l.Store.Prefetch(db, l.Keys)
	}
}

// takeArgs is command.CloneArgs for arguments of a command that has been split. Those of one that
// has outgrown the lane's room keep theirs, and the lane gets another.
func (l *Lane) takeArgs(args [][]byte) [][]byte {
	if cap(l.args) <= command.AheadKeep || len(args) == 0 || &l.args[:1][0] != &args[0] {
		return command.CloneArgs(args)
	}
	l.args = make([][]byte, 0, command.AheadArgs)
	command.CopyArgs(args, args)
	return args
}

// forgetInput lets go of the input that was split last, which arguments point into.
func (l *Lane) forgetInput() {
	clear(l.args[:cap(l.args)])
	clear(l.slots[:])
	l.ctx.Args = nil
	l.ahead = nil
	clear(l.Keys[:cap(l.Keys)])
}
