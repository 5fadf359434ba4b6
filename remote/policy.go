package remote

import "github.com/cellserver/cellserver/decide"

// reason says in one word why the engine has decided nothing: one of its errors, or late.
type reason string

// late is the reason for an ask whose deadline has passed before the engine answered.
const late reason = "timeout"

// policy answers asks that the engine did not decide in time.
type policy interface {
	// closed reports whether asks about key are answered with an error, so that their charges, if
	// any, have to be given back.
	closed(key []byte) bool
	// answer stores the answer in a. why is the reason why the engine did not decide a. It does
	// not block, and keeps no reference to a.
	answer(a *decide.Ask, why reason)
}
