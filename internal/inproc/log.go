package inproc

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// LogBuffer collects a log. Any number of goroutines may write to it.
type LogBuffer struct {
	mu   sync.Mutex // mu guards the fields below
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

var leftOut = regexp.MustCompile(`left_out=(\d+)`)

// Lines returns how many lines of the log contain message, and how many more the log reports as left
// out.
func (b *LogBuffer) Lines(message string) (lines, left int) {
	for line := range strings.SplitSeq(b.String(), "\n") {
		if !strings.Contains(line, message) {
			continue
		}
		if !strings.Contains(line, "lines were left out") {
			lines++
		}
		if m := leftOut.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1]) // there is no error, because the text has only digits
			left += n
		}
	}
	return lines, left
}
