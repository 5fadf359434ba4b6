package command

import (
	"context"
	"log/slog"
	"strings"
)

// audited returns the handler of cmd, followed by a line of the log. It wraps when the
// table is built, so that other commands pay nothing.
func audited(cmd *Command) func(*Call) {
	run := cmd.Run
	message := "audit: " + strings.ToUpper(strings.ReplaceAll(cmd.Name, "|", " "))
	return func(c *Call) {
		run(c)
		attrs := c.Client.Who()
		if cmd.AuditAttrs != nil {
			attrs = append(attrs, cmd.AuditAttrs(c)...)
		}
		if c.Failed {
			attrs = append(attrs, slog.Bool("refused", true))
		}
		c.Server.Log.LogAttrs(context.Background(), slog.LevelInfo, message, attrs...) //nolint:sloglint // one of the table, so that each is a kind
	}
}

// Who says whose doing a line of the log is. What a client calls itself is left out: it
// may be anything, a password included.
func (s *Client) Who() []slog.Attr {
	return []slog.Attr{slog.String("client", s.Addr()), slog.Int64("id", s.ID), slog.String("user", DefaultUser)}
}
