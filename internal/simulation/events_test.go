package simulation_test

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/internal/inproc"
)

// mostEvents bounds the log of a history.
const mostEvents = 2000

// events is the log of a history: what was done, and when by the virtual clock.
type events struct {
	mu      sync.Mutex // guards what follows
	lines   []string
	dropped int
}

// add appends a line.
func (e *events) add(format string, args ...any) {
	at := time.Since(time.Unix(0, int64(inproc.Epoch)))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, fmt.Sprintf("%10.3fs  ", at.Seconds())+fmt.Sprintf(format, args...))
	if len(e.lines) > mostEvents {
		e.lines, e.dropped = e.lines[1:], e.dropped+1
	}
}

// String returns all lines that are kept.
func (e *events) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprintf("(%d earlier events are left out)\n%s", e.dropped, strings.Join(e.lines, "\n"))
}
