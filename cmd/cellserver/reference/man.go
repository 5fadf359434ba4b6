package reference

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// roff writes the language of man pages, and keeps the first error.
type roff struct {
	w   io.Writer
	err error
}

// macro writes a request without escaping. After an error it writes nothing.
func (r *roff) macro(format string, args ...any) {
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.w, format+"\n", args...)
	}
}

// text writes the lines of a paragraph so that none of them is a request.
func (r *roff) text(paragraph string) {
	for _, line := range strings.Split(paragraph, "\n") {
		line = escape(strings.TrimSpace(line))
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		r.macro("%s", line)
	}
}

// paragraphs writes a text whose paragraphs are separated by empty lines.
func (r *roff) paragraphs(text string) {
	for i, p := range strings.Split(text, "\n\n") {
		if i > 0 {
			r.macro(".PP")
		}
		r.text(p)
	}
}

// option writes the entry of o in a list of options.
func (r *roff) option(o *Option) {
	call := `\fB` + escape(o.dashed()) + `\fR`
	if o.Hint != "" {
		call += ` \fI` + escape(o.Hint) + `\fR`
	}
	r.macro(".TP\n%s", call)
	text := o.Text
	if o.Default != "" {
		text += "\nThe default is " + o.Default + "."
	}
	r.text(text)
}

// escape escapes the special characters of roff. A dash is written as a minus sign and not as a
// hyphen.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
}

// Man writes the man page cellserver(1).
func Man(w io.Writer, p *Program) error {
	r := &roff{w: w}
	date := ""
	if !p.Date.IsZero() {
		date = p.Date.Format(time.DateOnly)
	}
	r.macro(`.TH CELLSERVER 1 "%s" "cellserver %s" "User Commands"`, date, p.Version)
	r.macro(".SH NAME\ncellserver \\- rate limiter that every Redis client can call")
	r.macro(".SH SYNOPSIS\n.B cellserver\n[\\fIfile.conf\\fR] [\\fB\\-\\-name\\fR \\fIvalue\\fR ...]")
	for i := range p.Commands {
		for _, call := range p.Commands[i].calls() {
			call, _, _ = strings.Cut(call, ", or back")
			r.macro(".br")
			r.text(call)
		}
	}
	r.macro(".SH DESCRIPTION")
	r.paragraphs(description)
	r.macro(".SH COMMANDS")
	for i := range p.Commands {
		c := &p.Commands[i]
		r.macro(".SS %s", escape(c.Name))
		r.macro(".nf")
		r.text(c.Usage)
		r.macro(".fi\n.PP")
		r.paragraphs(c.Text)
		for j := range c.Flags {
			r.option(&c.Flags[j])
		}
	}
	r.macro(".SH OPTIONS")
	r.paragraphs(precedence)
	for i := range p.Options {
		r.option(&p.Options[i])
	}
	r.macro(".SH SIGNALS")
	for _, s := range signals {
		r.macro(".TP\n.B %s", s[0])
		r.text(s[1])
	}
	r.macro(`.SH EXIT STATUS
0 if the server has stopped, or the command has done what it should.
1 after an error, which is on the standard error.
.PP
policy diff ends with 1 if there are changes, and with 2 after an error.
.SH SEE ALSO
.BR redis\-cli (1)`)
	return r.err
}

const description = `cellserver is a rate limiter. It speaks the Redis protocol, RESP2 and RESP3, and answers
CL.THROTTLE as Redis does with the module redis-cell. Other commands limit by sliding windows,
token buckets and numbers of simultaneous calls.

Without arguments it listens on 127.0.0.1:6379, keeps everything in memory and writes
nothing to disk. A redis.conf starts it unchanged.`

const precedence = `An option is in a file, in the environment as CELLSERVER_NAME, or an argument --name value.
An argument overrides the environment, and the environment overrides the file.`

// signals describes the effect of signals on a running server.
var signals = [][2]string{
	{"SIGTERM, SIGINT", "Stop: clients get the replies to what they have sent. The second one ends the process at once."},
	{"SIGHUP", "Read the configuration again, with users and certificates. If anything is wrong, nothing changes, and the log says what."},
}
