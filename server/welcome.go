package server

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/commands/command"
)

// welcome reports that the server accepts clients: in a few lines to a person at a
// terminal, and in one line to a log.
func (s *Server) welcome() {
	keeps := s.keeps()
	if s.terminal != nil {
		_, _ = fmt.Fprint(s.terminal, s.greeting(keeps)) // somebody may have closed the terminal
	}
	if s.terminal == nil || s.logFile != nil {
		s.log.Info("ready to accept connections", "version", Version, "addresses", s.addresses(), "keeps", keeps, "maxmemory", number(s.config.value("maxmemory")))
	}
}

const keepsNothing = "nothing, memory only"

// keeps describes what survives a restart.
func (s *Server) keeps() string {
	dir, err := filepath.Abs(s.persistence.path())
	if err != nil {
		dir = s.persistence.path()
	}
	switch {
	case s.config.remote():
		return "nothing here, everything in " + maskURL(s.config.value("store"))
	case s.config.value("appendonly") == "yes":
		return "everything, in " + dir + " (appendfsync " + s.config.value("appendfsync") + ")"
	case s.config.value("save") != "":
		return "snapshots, in " + dir + " (save " + s.config.value("save") + ")"
	}
	return keepsNothing
}

// greeting returns the text for a terminal.
func (s *Server) greeting(keeps string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cellserver %s is ready. It answers as Redis %s with redis-cell.\n\n", Version, command.RedisVersion)
	line := func(name, text string) { fmt.Fprintf(&b, "  %-11s %s\n", name, text) }
	line("listens on", strings.Join(s.addresses(), ", "))
	if keeps == keepsNothing {
		keeps += ": --appendonly yes keeps everything over a restart"
	}
	line("keeps", keeps)
	if most := number(s.config.value("maxmemory")); most > 0 {
		line("maxmemory", inUnits(most)+", beyond which new keys are refused")
	} else {
		line("maxmemory", "no bound: --maxmemory 1gb sets one")
	}
	line("password", map[bool]string{true: "none", false: "yes"}[s.config.value("requirepass") == ""])
	line("try", s.tryLine()+" CL.THROTTLE user123 15 30 60")
	line("help", "cellserver help; Ctrl-C stops")
	b.WriteByte('\n')
	return b.String()
}

// tryLine returns a redis-cli command that reaches this server.
func (s *Server) tryLine() string {
	cli := "redis-cli"
	switch a := s.Addr().(type) {
	case *net.TCPAddr:
		if !a.IP.IsUnspecified() && !a.IP.Equal(net.IPv4(127, 0, 0, 1)) {
			cli += " -h " + a.IP.String()
		}
		if a.Port != 6379 {
			cli += " -p " + strconv.Itoa(a.Port)
		}
	default:
		cli += " -s " + a.String()
	}
	if s.config.value("requirepass") != "" {
		cli += " --askpass"
	}
	return cli
}

// inUnits formats a number of bytes as in a configuration.
func inUnits(n int64) string {
	for _, u := range []struct {
		suffix string
		factor int64
	}{{"gb", 1 << 30}, {"mb", 1 << 20}, {"kb", 1 << 10}} {
		if n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
