package command

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/stats"
)

// audited returns the handler of cmd for FlagAudit: it runs the command and then writes a log line,
// with the attribute refused if the call has failed. If cmd.Change is set, the handler also adds a
// call that succeeded to the list of changes. With cmd.ByCallers it adds only calls from the admin
// port.
func audited(cmd *Command) func(*Call) {
	run := cmd.Run
	message := "audit: " + strings.ToUpper(strings.ReplaceAll(cmd.Name, "|", " "))
	return func(c *Call) {
		run(c)
		attrs := c.Client.LogAttrs()
		if cmd.AuditAttrs != nil {
			attrs = append(attrs, cmd.AuditAttrs(c)...)
		}
		if c.Failed {
			attrs = append(attrs, slog.Bool("refused", true))
		} else if cmd.Change != "" && (c.Client.ID == 0 || !cmd.ByCallers) {
			is := stats.Change{At: c.Server.CivilMillis(), Kind: cmd.Change, Text: changeText(c), By: c.Client.By()}
			if at := cmd.Pattern; at > 0 && len(c.Args[at]) <= maxChangeKey {
				is.Key, is.Words = string(c.Args[at-1])+":"+string(c.Args[at]), changeWords(c.Args[at:])
			}
			c.Server.Changes.Add(is)
		}
		c.Server.Log.LogAttrs(context.Background(), slog.LevelInfo, message, attrs...) //nolint:sloglint // one of the table, so that each is a kind
	}
}

// LogAttrs returns the log attributes that identify the client: address, ID, and user. The name
// that the client gave itself is left out: it may be anything, even a password.
func (s *Client) LogAttrs() []slog.Attr {
	which := slog.Int64("id", s.ID)
	if s.ID == 0 { // a request to the admin port has no connection, so no ID
		which = slog.String("via", "admin port")
	}
	return []slog.Attr{slog.String("client", s.Addr()), which, slog.String("user", s.UserName())}
}

// Changed records an event that may explain the server's behaviour from now on. kind is one word,
// text must not contain a secret, and by names the originator. Any goroutine may call it.
func (s *Server) Changed(kind, text, by string) {
	s.Changes.Add(stats.Change{At: s.CivilMillis(), Kind: kind, Text: text, By: by})
}

// CivilMillis returns the time of day in Unix milliseconds: the civil clock if Options has one, and
// otherwise the store's clock.
func (s *Server) CivilMillis() int64 {
	if s.Options.Civil != nil {
		return int64(s.Options.Civil()) / int64(time.Millisecond)
	}
	return int64(s.Options.Now()) / int64(time.Millisecond)
}

// By returns a text that names the client as the originator of a change: its user and its address.
// A client with the ID 0 is a request to the admin port.
func (s *Client) By() string {
	if s.ID == 0 {
		return "admin port, user " + s.UserName() + " from " + s.Addr()
	}
	return s.UserName() + ", from " + s.Addr()
}

// changeText returns the text of a change for the call c: the command's name and the arguments that
// are no secrets. Those are the key of a limiter, the names of users and policies, the duration of
// a pause, and the attributes of the audit log, such as the database.
func changeText(c *Call) string {
	text := strings.ToUpper(strings.ReplaceAll(c.Cmd.Name, "|", " "))
	if at := c.Cmd.Pattern; at > 0 {
		text += " " + string(Echo(c.Args[at-1], MaxEcho))
	}
	for i := 2; i < min(len(c.Args), 2+c.Cmd.Named); i++ {
		text += " " + string(Echo(c.Args[i], MaxEcho))
	}
	if c.Cmd.AuditAttrs != nil {
		for _, a := range c.Cmd.AuditAttrs(c) {
			text += " " + a.String()
		}
	}
	return text
}

// maxChangeWord and maxChangeWords bound what the list of changes keeps of a call: the bytes of
// each argument, and the number of arguments. maxChangeKey is the maximum length of a key, in
// bytes, that the list keeps. RL.RESET may name a longer one. The list keeps neither the key nor
// the arguments of such a call, because it would need the whole key to check whether a user may
// read it.
const (
	maxChangeWord  = 64
	maxChangeWords = 24
	maxChangeKey   = 1 << 10
)

// changeWords joins words, the arguments of a change, with spaces. It quotes the words that are
// empty or contain a space, a quotation mark, a backslash or an unprintable character, and shortens
// long words and long lists with an ellipsis.
func changeWords(words [][]byte) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if i == maxChangeWords {
			b.WriteString("…")
			break
		}
		text := string(word[:min(len(word), maxChangeWord)])
		if len(word) > maxChangeWord {
			text = strings.ToValidUTF8(text, "") + "…"
		}
		if quoted := strconv.Quote(text); text == "" || strings.Contains(text, " ") || quoted != `"`+text+`"` {
			text = quoted
		}
		b.WriteString(text)
	}
	return b.String()
}
