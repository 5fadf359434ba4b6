package server

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/loglimit"
)

// logging has the log of a server, and its settings.
type logging struct {
	log     *slog.Logger
	limits  *loglimit.Limits
	logFile *os.File
	level   slog.LevelVar
	exposed bool // whether logExposure has logged its warning
}

var logLevels = map[string]slog.Level{
	"debug":   slog.LevelDebug,
	"verbose": slog.LevelDebug,
	"notice":  slog.LevelInfo,
	"warning": slog.LevelWarn,
	"nothing": slog.LevelError + 1,
}

// openLog sets s.log to a logger that writes to the handler of given. If given is nil, the logger
// writes to the file of the option logfile, or to standard error. Every line passes
// [loglimit.Limits]. No part of the server may log a key, a value or a password.
func (s *Server) openLog(given *slog.Logger) error {
	s.level.Set(logLevels[s.config.Value("loglevel")])
	s.limits = loglimit.New(s.stopwatch)
	if given != nil {
		s.log = slog.New(s.limits.Handler(given.Handler()))
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
	s.log = slog.New(s.limits.Handler(slog.NewTextHandler(out, &slog.HandlerOptions{Level: &s.level})))
	return nil
}

// logIdle logs the options of Redis in the configuration that have no effect in this server, the
// modules in it, which are built in, and the variables of ratelimit that have no effect.
func logIdle(c *config.Config, variables []string, log *slog.Logger) {
	for _, m := range c.Modules() {
		log.Info("redis-cell is built in, so its module is not loaded", "loadmodule", m)
	}
	if idle := c.Idle(); len(idle) > 0 {
		log.Warn("options of Redis that have no effect here were ignored", "options", strings.Join(idle, " "))
	}
	if len(variables) > 0 {
		log.Warn("variables of ratelimit that have no effect here were ignored", "variables", strings.Join(variables, " "))
	}
}

// logExposure logs a warning if other machines can reach this server, the user default has full
// access without a password, and protected-mode is no. It is called at the start and after each
// change of settings. It does not repeat the warning until the server was protected in between.
func (s *Server) logExposure() {
	a := s.reachable()
	exposed := a != "" && s.engine.Users.Default.Rules().Open() && s.config.Value("protected-mode") == "no"
	if exposed && !s.exposed {
		s.log.Warn("anybody who can reach this server has full access: there is no password, and protected-mode is no", "bind", a)
	}
	s.exposed = exposed
}
