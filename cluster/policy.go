package cluster

import "github.com/cellserver/cellserver/decide"

// reason is the reason, in one word, why the engine has decided nothing: one of its errors, or
// late.
type reason string

// late is the reason of an ask whose deadline passed before the engine answered.
const late reason = "timeout"

// policy answers asks that the engine did not decide in time.
type policy interface {
	// closed reports whether asks about the key are answered with an error, so that their charges,
	// if any, are given back.
	closed(key []byte) bool
	// answer fills in the answer of an ask. It does not block, and keeps no reference to the ask.
	answer(a *decide.Ask, why reason)
}
