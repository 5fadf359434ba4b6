package session

// BehindPause is how many commands wait for the end of a pause without a client that it wakes.
func (e *Engine) BehindPause() int {
	e.pause.mu.Lock()
	defer e.pause.mu.Unlock()
	return len(e.pause.behind)
}
