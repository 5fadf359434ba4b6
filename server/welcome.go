package server

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/config"
)

// welcome reports that the server accepts clients, by a few lines on a terminal or by one line in
// the log. If there is a terminal and a log file, it writes to both.
func (s *Server) welcome() {
	keeps := s.keeps()
	if s.config.ManualClock() {
		s.log.Warn("the clock is manual: this server is for tests only, and time passes only by DEBUG CLOCK ADD")
	}
	if s.given.Terminal != nil {
		_, _ = fmt.Fprint(s.given.Terminal, s.greeting(keeps)) // an error means that the terminal has been closed
	}
	if s.given.Terminal == nil || s.logFile != nil {
		s.log.Info("ready to accept connections", "version", Version, "addresses", s.addresses(), "keeps", keeps, "maxmemory", s.config.Number("maxmemory"))
	}
}

const keepsNothing = "nothing, memory only"

// keeps describes which part of the state survives a restart, and where that part is stored.
func (s *Server) keeps() string {
	dir, err := filepath.Abs(s.persistence.Path())
	if err != nil {
		dir = s.persistence.Path()
	}
	switch {
	case s.config.Remote():
		return "nothing here, everything in " + config.MaskURL(s.config.Value("store"))
	case s.config.Yes("appendonly"):
		return "everything, in " + dir + " (appendfsync " + s.config.Value("appendfsync") + ")"
	case s.config.Value("save") != "":
		return "snapshots, in " + dir + " (save " + s.config.Value("save") + ")"
	}
	return keepsNothing
}

// greeting returns the text for a terminal. keeps is the result of Server.keeps.
func (s *Server) greeting(keeps string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cellserver %s is ready. It answers as Redis %s with redis-cell.\n\n", Version, command.RedisVersion)
	line := func(name, text string) { fmt.Fprintf(&b, "  %-11s %s\n", name, text) }
	if own := s.addresses(); len(own) > 0 {
		line("listens on", strings.Join(own, ", "))
	}
	if keeps == keepsNothing && s.config.Kept() {
		keeps += ": --appendonly yes keeps everything over a restart"
	}
	line("keeps", keeps)
	if s.config.ManualClock() {
		line("clock", "manual, for tests only: time passes only by DEBUG CLOCK ADD")
	}
	if most := s.config.Number("maxmemory"); most > 0 {
		size := config.InUnits(most)
		if !strings.HasSuffix(size, "b") {
			size += " bytes"
		}
		line("maxmemory", size+", beyond which new keys are refused")
	} else {
		line("maxmemory", "no bound: --maxmemory 1gb sets one")
	}
	line("password", map[bool]string{true: "none", false: "yes"}[s.config.Value("requirepass") == ""])
	if len(s.addresses()) > 0 {
		line("try", s.tryLine()+" CL.THROTTLE user123 15 30 60")
	}
	line("help", "cellserver help; Ctrl-C stops")
	b.WriteByte('\n')
	return b.String()
}

// tryLine returns a redis-cli command that reaches this server from its own machine.
func (s *Server) tryLine() string { return s.cli("") }

// cli returns a redis-cli command that reaches the first listener of this server. It is for another
// machine, which knows this machine as name; if name is "", it is for this machine itself. name is
// used only if the listener accepts connections on every address.
func (s *Server) cli(name string) string {
	cli := "redis-cli"
	open := s.listening.all()
	if len(open) == 0 { // the server has no listener, as in some tests
		return cli
	}
	switch a := open[0].Addr().(type) {
	case *net.TCPAddr:
		switch {
		case a.IP.IsUnspecified() && name != "":
			cli += " -h " + name
		case !a.IP.IsUnspecified() && !a.IP.Equal(net.IPv4(127, 0, 0, 1)):
			cli += " -h " + a.IP.String()
		}
		if a.Port != 6379 {
			cli += " -p " + strconv.Itoa(a.Port)
		}
	default:
		cli += " -s " + a.String()
	}
	if open[0].option == "tls-port" {
		cli += " --tls"
	}
	if s.config.Value("requirepass") != "" {
		cli += " --askpass"
	}
	return cli
}
