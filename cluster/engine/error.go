package engine

// Error says why the engine did not do something, or that nobody knows whether it did.
type Error struct {
	// Reason is one word, of which there are few: timeout, refused, LOADING.
	Reason string
	// Text is for people. It has no key, value or password.
	Text string
	// NotDone says that nothing was written, and that nothing of it can be written later.
	// Without it a swap is in doubt.
	NotDone bool
}

func (e *Error) Error() string {
	if e.Text == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Text
}
