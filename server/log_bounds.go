package server

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

// logQuota is the limit for lines of one kind: ten at once, and then one in ten seconds.
var logQuota = func() gcra.Quota {
	q, err := gcra.NewQuota(9, 1, 10)
	if err != nil {
		panic(err)
	}
	return q
}()

// maxLogKinds is the maximum number of kinds that are counted separately. The kind of a line is its
// message, which is a constant in the source, so there are far fewer.
const maxLogKinds = 256

// boundedLog is a handler with a limit for each kind of line, because any client that can reach the
// server may cause a line with every connection. A line has the attribute left_out if lines of the
// same kind were left out before it.
type boundedLog struct {
	slog.Handler
	bounds *logBounds
}

// logBounds is the state that a boundedLog shares with the handlers derived from it.
type logBounds struct {
	stopwatch func() time.Duration

	mu    sync.Mutex
	kinds map[string]*logKind // guarded by mu
}

// logKind is the state of one kind of lines.
type logKind struct {
	tat   limit.Instant
	left  int64 // the number of lines left out since the last line that was written
	level slog.Level
	to    slog.Handler
}

func newLogBounds(stopwatch func() time.Duration) *logBounds {
	return &logBounds{stopwatch: stopwatch, kinds: make(map[string]*logKind)}
}

// Handle implements [slog.Handler]. It drops the line if the limit of its kind does not permit it.
func (h boundedLog) Handle(ctx context.Context, r slog.Record) error {
	left, write := h.bounds.admit(r.Message, r.Level, h.Handler)
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
func (h boundedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return boundedLog{h.Handler.WithAttrs(attrs), h.bounds}
}

// WithGroup implements [slog.Handler]. The result shares the limits of h.
func (h boundedLog) WithGroup(name string) slog.Handler {
	return boundedLog{h.Handler.WithGroup(name), h.bounds}
}

// admit reports whether a line with the given message may be written. If it may, left is the number
// of lines with this message that were left out since the last one. level and to are stored for
// reportLeftOut.
func (b *logBounds) admit(message string, level slog.Level, to slog.Handler) (left int64, write bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.kinds[message]
	if k == nil {
		if len(b.kinds) >= maxLogKinds {
			message = ""
		}
		if k = b.kinds[message]; k == nil {
			k = &logKind{}
			b.kinds[message] = k
		}
	}
	k.level, k.to = level, to
	if !b.take(k) {
		k.left++
		return 0, false
	}
	left, k.left = k.left, 0
	return left, true
}

// take charges a line to k and returns true, if the limit permits it. The caller holds mu.
func (b *logBounds) take(k *logKind) bool {
	next, d, _ := gcra.Decide(k.tat, limit.Instant(b.stopwatch()), &logQuota, 1)
	k.tat = next
	return d.Allowed()
}

// reportLeftOut logs, for each kind whose lines were left out, how many they were. It reports a
// kind only if the limit permits a line; if all is true, it reports every kind.
func (b *logBounds) reportLeftOut(all bool) {
	type line struct {
		message string
		logKind
	}
	var lines []line
	b.mu.Lock()
	for message, k := range b.kinds {
		if k.left > 0 && (all || b.take(k)) {
			lines = append(lines, line{message, *k})
			k.left = 0
		}
	}
	b.mu.Unlock()
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(a.message, b.message) })
	for _, l := range lines {
		slog.New(l.to).Log(context.Background(), l.level, "lines were left out of the log", "line", l.message, "left_out", l.left)
	}
}
