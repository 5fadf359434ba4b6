package commands

import (
	"context"
	"log/slog"
	"strings"
)

// FlagAudit is set on commands that change what is there for everybody: the log says who
// has called them. COMMAND does not show it.
const FlagAudit Flag = 1 << 31

// audited returns the handler of cmd, followed by a line of the log. It wraps when the
// table is built, so that other commands pay nothing.
func audited(cmd *Command) func(*Ctx) {
	run := cmd.Run
	message := "audit: " + strings.ToUpper(strings.ReplaceAll(cmd.Name, "|", " "))
	return func(c *Ctx) {
		run(c)
		attrs := c.Client.who()
		if cmd.AuditAttrs != nil {
			attrs = append(attrs, cmd.AuditAttrs(c)...)
		}
		if c.fail {
			attrs = append(attrs, slog.Bool("refused", true))
		}
		c.server.log.LogAttrs(context.Background(), slog.LevelInfo, message, attrs...) //nolint:sloglint // one of the table, so that each is a kind
	}
}

// who says whose doing a line of the log is. What a client calls itself is left out: it
// may be anything, a password included.
func (s *Client) who() []slog.Attr {
	return []slog.Attr{slog.String("client", s.addr()), slog.Int64("id", s.id), slog.String("user", defaultUser)}
}

// mostAudited is how many options of one CONFIG SET a line names.
const mostAudited = 64

// knownOptions returns the names that a CONFIG SET names, but for those that do not
// exist: they may be values that are out of place.
func (c *Ctx) knownOptions() string {
	var names []string
	for i := 2; i < len(c.Args); i += 2 {
		if len(names) == mostAudited {
			names = append(names, "...")
			break
		}
		name := strings.ToLower(string(c.Args[i]))
		known := c.server.opts.Settings.Get(func(n string) bool { return n == name })
		if len(known) == 0 {
			name = "?"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// auditLogin notes an attempt to authenticate that has failed. The name that was given
// is not said: who has mistaken the order gives the password.
func (c *Ctx) auditLogin() {
	attrs := c.Client.who()
	c.server.log.LogAttrs(context.Background(), slog.LevelWarn, "audit: failed AUTH", attrs[:2]...)
}
