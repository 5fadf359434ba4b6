package session

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

const (
	// largeInput is the input size in bytes above which a worker drops its references to the
	// input after the turn, so that the input can be freed. Input above this size also waits
	// while [Engine.HoldLongInput] is on.
	largeInput = 64 << 10
)

// split splits complete commands off in and puts them in w.requests. It stops at an incomplete
// command, at a protocol error, after the maximum number of commands, and when the worker's room is
// used up. A command that the guard discards, for example because it is too large, is a request
// with an error and no arguments. swallowed is the number of bytes of in that the guard has read.
// err is the protocol error, "" if there is none.
func (s *Session) split(w *Worker, in []byte) (swallowed int, err resp.Error) {
	limits, most := s.frameLimits()
	if cap(w.room) > command.KeptRequestWords {
		resp.Recycle(w.room)
		w.room = make([][]byte, 0, command.RequestWords)
	}
	room, n, at := w.room, 0, 0
	for n < most {
		args, used, fault := s.guard.Next(in[at:], room[len(room):], limits)
		at += used
		swallowed = at
		if fault != "" && fault.Refuses() {
			w.slots[n] = request{refused: fault, size: used, end: at}
			n++
			continue
		}
		if fault != "" || len(args) == 0 {
			err = fault
			break
		}
		a := &w.slots[n]
		n++
		a.cmd, a.args, a.derivedKey, a.size, a.end = s.engine.Commands.Lookup(args[0]), args, nil, used, at
		if len(room)+len(args) > cap(room) {
			w.room = args[:0] // the command has outgrown the worker's room, and its slice becomes the new room
			break
		}
		room = room[:len(room)+len(args)]
		if cap(room)-len(room) < command.RequestWords/8 {
			break
		}
	}
	w.requests = w.slots[:n]
	return swallowed, err
}

// frameLimits returns the limits on the size of a command of the client, and most, the maximum
// number of commands that may be split off before the first of them runs. most is 1 while the
// client is not authenticated, since authentication changes the limits for the commands after it.
func (s *Session) frameLimits() (limits *resp.Limits, most int) {
	if s.Admitted() {
		return &s.engine.Limits().Frame, command.MaxRequests
	}
	return &s.engine.Limits().FrameUnauth, 1
}

// prefetch makes the store load the entries of the keys that w.requests are about to use in
// database db into the processor cache, if there are at least two keys. It also computes the
// derived keys of the requests.
func (w *Worker) prefetch(db int) {
	w.Keys = w.Keys[:0]
	for i := range w.requests {
		a := &w.requests[i]
		switch {
		case a.cmd == nil || len(a.args) < 2:
		case a.cmd.Keys.First == 1 && (a.cmd.Keys.Derived == nil || a.cmd.Keys.FirstDerived(a.args) == 0):
			w.Keys = append(w.Keys, a.args[1])
		case a.cmd.Keys.Derived != nil:
			w.derive(a)
		}
	}
	if len(w.Keys) > 1 && w.keys != nil {
		w.keys.Prefetch(db, w.Keys)
	}
}

// derive adds the derived keys of a to w.Keys and sets a.derivedKey to the first one. After that one it
// stops at [command.MaxRequests] keys, because a call may name any number of keys, even if it is refused
// for that.
func (w *Worker) derive(a *request) {
	d := a.cmd.Keys.Derived
	for at := a.cmd.Keys.FirstDerived(a.args); at > 0; at = d.After(a.args, at) {
		from := len(w.derivedKeys)
		w.derivedKeys = d.Append(w.derivedKeys, a.args, at)
		key := w.derivedKeys[from:len(w.derivedKeys):len(w.derivedKeys)]
		if w.Keys = append(w.Keys, key); a.derivedKey == nil {
			a.derivedKey = key
		}
		if len(w.Keys) >= command.MaxRequests {
			return
		}
	}
}

// takeArgs returns args with copied bytes, for a command that leaves the event loop: neither the
// worker nor the next input overwrites the result. The result is a new slice or, if the command
// has outgrown the worker's room, the room itself; then the worker gets a new room.
func (w *Worker) takeArgs(args [][]byte) [][]byte {
	if cap(w.room) <= command.KeptRequestWords || len(args) == 0 || &w.room[:1][0] != &args[0] {
		return command.CloneArgs(args)
	}
	w.room = make([][]byte, 0, command.RequestWords)
	command.CopyArgs(args, args)
	return args
}

// forgetInput drops the worker's references to the input that was split last.
func (w *Worker) forgetInput() {
	clear(w.room[:cap(w.room)])
	w.derivedKeys = nil
	clear(w.slots[:])
	w.ctx.Args = nil
	w.requests = nil
	clear(w.Keys[:cap(w.Keys)])
}
