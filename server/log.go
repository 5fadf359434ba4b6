package server

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/cellserver/cellserver/config"
)

// logging is the log of a server, and its settings.
type logging struct {
	log     *slog.Logger
	bounds  *logBounds
	logFile *os.File
	level   slog.LevelVar
	exposed bool // logExposure has warned
}

// logLevels maps Redis' names of severities to levels.
var logLevels = map[string]slog.Level{
	"debug":   slog.LevelDebug,
	"verbose": slog.LevelDebug,
	"notice":  slog.LevelInfo,
	"warning": slog.LevelWarn,
	"nothing": slog.LevelError + 1,
}

// openLog uses the given logger or creates one. Logs never contain a key, a value or a password,
// and every line of the server passes boundedLog.
func (s *Server) openLog(given *slog.Logger) error {
	s.level.Set(logLevels[s.config.Value("loglevel")])
	if given != nil {
		s.bounds = newLogBounds(s.stopwatch)
		s.log = slog.New(boundedLog{given.Handler(), s.bounds})
		return nil
	}
	out := os.Stderr
	if path := s.config.Path("logfile"); path != "" {
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

// logIdle logs the configured options that have no effect in this server.
func logIdle(c *config.Config, log *slog.Logger) {
	for _, m := range c.Modules() {
		log.Info("redis-cell is built in, so its module is not loaded", "loadmodule", m)
	}
	if idle := c.Idle(); len(idle) > 0 {
		log.Warn("options of Redis that have no effect here were ignored", "options", strings.Join(idle, " "))
	}
}

// logExposure warns if every client that can reach the server has full access, at the start and
// after CONFIG SET.
func (s *Server) logExposure() {
	a := s.reachable()
	exposed := a != "" && s.engine.Users.Default.Rules().Open() && s.config.Value("protected-mode") == "no"
	if exposed && !s.exposed {
		s.log.Warn("anybody who can reach this server has full access: there is no password, and protected-mode is no", "bind", a)
	}
	s.exposed = exposed
}
