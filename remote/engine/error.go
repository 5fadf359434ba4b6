package engine

// Error says why the engine did not do something, or that it is unknown whether the engine did
// it.
type Error struct {
	// Reason is a short word: a constant of this package, such as Timeout, or a word of an error
	// reply, such as LOADING.
	Reason string
	// Text is for operators. It contains no key, value or password.
	Text string
	// NotDone says that nothing was written, and that nothing will be written later. If it is
	// false, the outcome of a swap is unknown.
	NotDone bool
}

// Error returns the reason, followed by the text if there is one.
func (e *Error) Error() string {
	if e.Text == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Text
}
