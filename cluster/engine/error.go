package engine

// Error says why the engine did not do something, or that it is unknown whether it did.
type Error struct {
	// Reason is one of a few words, such as timeout, refused or LOADING.
	Reason string
	// Text is for operators. It contains no key, value or password.
	Text string
	// NotDone says that nothing was written and that nothing can be written later. Without it the
	// outcome of a swap is unknown.
	NotDone bool
}

func (e *Error) Error() string {
	if e.Text == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Text
}
