package inproc

import (
	"strings"
	"sync"
)

// LogBuffer collects a log. Any number of goroutines may write to it.
type LogBuffer struct {
	mu   sync.Mutex // guards the fields below
	text strings.Builder
	more chan struct{} // closed at the next write; nil if no goroutine waits for that
}

// Write implements [io.Writer].
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.more != nil {
		close(b.more)
		b.more = nil
	}
	return b.text.Write(p)
}

// String returns all text that was logged.
func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Await returns when text has been logged. It waits without a limit.
func (b *LogBuffer) Await(text string) {
	for {
		b.mu.Lock()
		if strings.Contains(b.text.String(), text) {
			b.mu.Unlock()
			return
		}
		if b.more == nil {
			b.more = make(chan struct{})
		}
		more := b.more
		b.mu.Unlock()
		<-more
	}
}
