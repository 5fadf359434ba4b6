package cluster

import "github.com/cellserver/cellserver/decide"

// reason says in one word why the engine decided nothing: those of its errors, and the
// one below.
type reason string

// late is the reason of an ask whose deadline passed before the engine answered.
const late reason = "timeout"

// policy answers what the engine did not decide in time.
type policy interface {
	// closed reports whether asks about the key are answered with an error, so that what
	// they turn out to have charged is given back.
	closed(key []byte) bool
	// answer fills in the answer of an ask. It does not block, and keeps nothing of it.
	answer(a *decide.Ask, why reason)
}
