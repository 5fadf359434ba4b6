package budget

// Grant is the memory of one of them. It implements [shared.Ledger] for its pieces:
// what they take comes out of what was asked for, as long as that lasts. Count with a
// positive number, and end, are for the one who makes the reply.
type Grant struct {
	All  *Budget
	left int64 // of what was asked for and has been granted
}

// Count implements [shared.Ledger].
func (r *Grant) Count(bytes int64) {
	if bytes > 0 {
		own := min(bytes, r.left)
		r.left -= own
		bytes -= own
	}
	if bytes != 0 {
		r.All.Count(bytes)
	}
}

// End gives back what was asked for and is not needed. r may be nil.
func (r *Grant) End() {
	if left := r.Unused(); left > 0 {
		r.left = 0
		r.All.Count(-left)
	}
}

// Unused is what has been granted and not been counted. r may be nil.
func (r *Grant) Unused() int64 {
	if r == nil {
		return 0
	}
	return r.left
}

// Over reports whether all others hold more than there is room for: somebody's reply has
// become larger than it was thought to be.
func (r *Grant) Over() bool {
	l := r.All
	l.mu.Lock()
	defer l.mu.Unlock()
	others := l.held - r.left
	return !l.ended && others > 0 && others > l.Room()
}
