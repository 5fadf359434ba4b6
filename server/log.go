package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// logLevels are Redis' names of severities.
var logLevels = map[string]slog.Level{
	"debug":   slog.LevelDebug,
	"verbose": slog.LevelDebug,
	"notice":  slog.LevelInfo,
	"warning": slog.LevelWarn,
	"nothing": slog.LevelError + 1,
}

// openLog uses the given logger or builds one. Logs never contain a key, a value
// or a password, and every line of the server passes boundedLog.
func (s *Server) openLog(given *slog.Logger) error {
	s.level.Set(logLevels[s.config.value("loglevel")])
	if given != nil {
		s.bounds = newLogBounds(s.stopwatch)
		s.log = slog.New(boundedLog{given.Handler(), s.bounds})
		return nil
	}
	out := os.Stderr
	if path := s.config.path("logfile"); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return fmt.Errorf("opening the log: %w", err)
		}
		out, s.logFile = f, f
	}
	s.bounds = newLogBounds(s.stopwatch)
	s.log = slog.New(boundedLog{slog.NewTextHandler(out, &slog.HandlerOptions{Level: &s.level}), s.bounds})
	return nil
}

// logIdle tells what the configuration names and this server has no use for.
func (c *Config) logIdle(log *slog.Logger) {
	for _, m := range c.modules {
		log.Info("redis-cell is built in, so its module is not loaded", "loadmodule", m)
	}
	if len(c.idle) > 0 {
		log.Warn("options of Redis that mean nothing here are taken and have no effect", "options", strings.Join(c.idle, " "))
	}
}

// logExposure warns when everybody who can reach the server may do everything, at the
// start and when CONFIG SET makes it so. It is called by putInForce alone.
func (s *Server) logExposure() {
	a := s.config.exposed()
	exposed := a != "" && s.config.value("protected-mode") == "no"
	if exposed && !s.exposed {
		s.log.Warn("everybody who reaches this server may do everything: there is no password, and protected-mode is no", "bind", a)
	}
	s.exposed = exposed
}

// logQuota is what of one kind of line is written: ten at once, and then one in ten
// seconds.
var logQuota = func() gcra.Quota {
	q, err := gcra.NewQuota(9, 1, 10)
	if err != nil {
		panic(err)
	}
	return q
}()

// maxLogKinds bounds the kinds of line that are told apart. A kind is a message, which is
// always a constant of the source, so that there are far fewer.
const maxLogKinds = 256

// boundedLog is a handler behind our own limiter. Whoever reaches the server may cause a
// line with every connection; of each kind only so many are written, and the next one
// says how many were left out (left_out).
type boundedLog struct {
	slog.Handler
	bounds *logBounds
}

// logBounds is what a boundedLog and all that derive from it share.
type logBounds struct {
	stopwatch func() time.Duration

	mu    sync.Mutex
	kinds map[string]*logKind // guarded by mu
}

// logKind is one message.
type logKind struct {
	tat   limit.Instant
	left  int64 // how many lines were left out since the last that was written
	level slog.Level
	to    slog.Handler
}

func newLogBounds(stopwatch func() time.Duration) *logBounds {
	return &logBounds{stopwatch: stopwatch, kinds: make(map[string]*logKind)}
}

// Handle implements [slog.Handler].
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

// WithAttrs implements [slog.Handler].
func (h boundedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return boundedLog{h.Handler.WithAttrs(attrs), h.bounds}
}

// WithGroup implements [slog.Handler].
func (h boundedLog) WithGroup(name string) slog.Handler {
	return boundedLog{h.Handler.WithGroup(name), h.bounds}
}

// admit reports whether a line is to be written, and how many of its kind were left out
// before it.
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

// take charges a line to its kind, if there is room. mu must be held.
func (b *logBounds) take(k *logKind) bool {
	next, d, _ := gcra.Decide(k.tat, limit.Instant(b.stopwatch()), &logQuota, 1)
	k.tat = next
	return d.Allowed()
}

// tell writes what was left out of each kind that has had no line since: as soon as there
// is room for one, or at once if all is to be told.
func (b *logBounds) tell(all bool) {
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
