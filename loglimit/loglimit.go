// Package loglimit limits how many lines of each kind a log gets.
//
// Any client that can reach the server may cause a line in the log with every connection. [Limits]
// permits ten lines of a kind at once, and then one in ten seconds. The kind of a line is its
// message, which is a constant in the source. The next line of the kind says how many lines were
// left out.
package loglimit

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// quota is the limit for lines of one kind: ten at once, and then one in ten seconds.
var quota = func() gcra.Quota {
	q, err := gcra.NewQuota(9, 1, 10)
	if err != nil {
		panic(err)
	}
	return q
}()

// maxKinds is the maximum number of kinds with a limit of their own. Further kinds share one limit.
// The messages are constants in the source, so there are far fewer kinds.
const maxKinds = 256

// handler passes lines on to the embedded handler as far as limits permit. A line gets the
// attribute left_out if lines of the same kind were left out before it.
type handler struct {
	slog.Handler
	limits *Limits
}

// Limits has a limit for each kind of line. All handlers of a Limits share these limits. Any
// goroutine may call its methods.
type Limits struct {
	stopwatch func() time.Duration

	mu    sync.Mutex
	kinds map[string]*kind // the state of each kind of lines; guarded by mu
}

// kind is the state of one kind of lines.
type kind struct {
	tat   limit.Instant
	left  int64 // number of lines left out since the last line that was written
	level slog.Level
	to    slog.Handler
}

// New returns limits that measure time by stopwatch, a monotonic clock.
func New(stopwatch func() time.Duration) *Limits {
	return &Limits{stopwatch: stopwatch, kinds: make(map[string]*kind)}
}

// Handler returns a handler that passes a line to the given handler if the limit of its kind
// permits it.
func (l *Limits) Handler(to slog.Handler) slog.Handler { return handler{to, l} }

// Handle implements [slog.Handler]. It drops the line if the limit of its kind does not permit it.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	left, write := h.limits.admit(r.Message, r.Level, h.Handler)
	if !write {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int64("left_out", left))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler]. The result shares the limits of h.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.limits}
}

// WithGroup implements [slog.Handler]. The result shares the limits of h.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.limits}
}

// admit reports whether a line with the given message may be written. If it may, left is the number
// of lines of its kind that were left out since the last written line. admit stores level and to
// for ReportLeftOut. Beyond maxKinds kinds, all further messages are one kind.
func (l *Limits) admit(message string, level slog.Level, to slog.Handler) (left int64, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[message]
	if k == nil {
		if len(l.kinds) >= maxKinds {
			message = ""
		}
		if k = l.kinds[message]; k == nil {
			k = &kind{}
			l.kinds[message] = k
		}
	}
	k.level, k.to = level, to
	if !l.take(k) {
		k.left++
		return 0, false
	}
	left, k.left = k.left, 0
	return left, true
}

// take charges one line to k if the limit permits it, and reports whether it does. The caller holds
// mu.
func (l *Limits) take(k *kind) bool {
	next, d, _ := gcra.Decide(k.tat, limit.Instant(l.stopwatch()), &quota, 1)
	k.tat = next
	return d.Allowed()
}

// ReportLeftOut logs a line for each kind of which lines were left out, with their number. If all
// is false, it does so only for the kinds whose limit permits a line, and charges the line to the
// limit.
func (l *Limits) ReportLeftOut(all bool) {
	type line struct {
		message string
		kind
	}
	var lines []line
	l.mu.Lock()
	for message, k := range l.kinds {
		if k.left > 0 && (all || l.take(k)) {
			lines = append(lines, line{message, *k})
			k.left = 0
		}
	}
	l.mu.Unlock()
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(a.message, b.message) })
	for _, line := range lines {
		slog.New(line.to).Log(context.Background(), line.level, "lines were left out of the log", "line", line.message, "left_out", line.left)
	}
}
