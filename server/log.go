package server

import (
	"fmt"
	"log/slog"
	"os"
)

// logLevels are Redis' names of severities.
var logLevels = map[string]slog.Level{
	"debug":   slog.LevelDebug,
	"verbose": slog.LevelDebug,
	"notice":  slog.LevelInfo,
	"warning": slog.LevelWarn,
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
	if path := s.config.value("logfile"); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return fmt.Errorf("opening the log: %w", err)
		}
		out, s.logFile = f, f
	}
	s.log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: &s.level}))
	return nil
}
