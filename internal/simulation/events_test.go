package simulation_test

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/internal/inproc"
)

// maxEvents bounds the log of a history.
const maxEvents = 2000

// events is the log of a history, with times of the virtual clock.
type events struct {
	mu      sync.Mutex // guards the fields below
	lines   []string
	dropped int
}

// add appends a line.
func (e *events) add(format string, args ...any) {
	at := time.Since(time.Unix(0, int64(inproc.Epoch)))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, fmt.Sprintf("%10.3fs  ", at.Seconds())+fmt.Sprintf(format, args...))
	if len(e.lines) > maxEvents {
		e.lines, e.dropped = e.lines[1:], e.dropped+1
	}
}

// String returns all kept lines.
func (e *events) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprintf("(%d earlier events are left out)\n%s", e.dropped, strings.Join(e.lines, "\n"))
}
