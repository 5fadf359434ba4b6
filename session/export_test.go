package session

// BehindPause returns how many functions of AfterPause wait for the end of a pause.
func (e *Engine) BehindPause() int {
	e.pause.mu.Lock()
	defer e.pause.mu.Unlock()
	return len(e.pause.behind)
}
