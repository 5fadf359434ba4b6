package server

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
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
// or a password.
func (s *Server) openLog(given *slog.Logger) error {
	s.level.Set(logLevels[s.config.value("loglevel")])
	if given != nil {
		s.log = given
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
	s.log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: &s.level}))
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
