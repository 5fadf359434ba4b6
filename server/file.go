package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// Bounds of files that include others: how deep, how many in all, and of each its bytes.
const (
	maxIncludeDepth = 16
	maxIncluded     = 1000
	maxConfig       = 16 << 20
)

// firstFile reads the file that the command line begins with.
func (l *loader) firstFile(path string) {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	l.c.file = path
	l.file("reading the configuration", path)
}

// file reads a file; where begins the text of a fault that it cannot be read.
func (l *loader) file(where, path string) {
	switch {
	case slices.Contains(l.chain, path):
		l.fault(where, fmt.Errorf("%s includes itself", path))
		return
	case len(l.chain) > maxIncludeDepth:
		l.fault(where, fmt.Errorf("files include one another more than %d deep", maxIncludeDepth))
		return
	case l.files > maxIncluded:
		l.fault(where, fmt.Errorf("more than %d files are included", maxIncluded))
		return
	}
	f, err := os.Open(path)
	if err != nil {
		l.fault(where, err)
		return
	}
	l.files++
	l.chain = append(l.chain, path)
	l.readAll(path, f)
	l.chain = l.chain[:len(l.chain)-1]
	_ = f.Close() // it was only read
}

// readAll reads a file that is open, or what somebody pipes in.
func (l *loader) readAll(name string, r io.Reader) {
	if r == nil {
		l.fault(name, errors.New("there is none to read the configuration from"))
		return
	}
	content, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	switch {
	case err != nil:
		l.fault(name, err)
	case len(content) > maxConfig:
		l.fault(name, fmt.Errorf("longer than %d bytes, so no configuration", maxConfig))
	default:
		l.content(name, string(content))
	}
}

// content reads the syntax of redis.conf: a name and its values on a line, quotes as on
// the command line of redis-cli, '#' before a comment.
func (l *loader) content(path, content string) {
	for n, line := range strings.Split(content, "\n") {
		line = strings.Trim(line, " \t\r")
		if line == "" || line[0] == '#' {
			continue
		}
		where := fmt.Sprintf("%s:%d", path, n+1)
		fields, ok := resp.SplitWords([]byte(line))
		switch {
		case !ok:
			l.fault(where, errors.New("unbalanced quotes"))
			continue
		case len(fields) == 0:
			continue
		case len(fields) < 2:
			l.fault(where, l.lacksValue(string(fields[0])))
			continue
		}
		values := make([]string, 0, len(fields)-1)
		for _, f := range fields[1:] {
			values = append(values, string(f))
		}
		l.directive(where, string(fields[0]), values)
	}
}

// include is `include path`: relative to where the server works, as in Redis, not to the
// file. A pattern may match nothing; a name must be there.
func (l *loader) include(where string, values []string) {
	if len(values) != 1 {
		l.fault(where, errors.New(`option "include" takes one value`))
		return
	}
	path := values[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.c.value("dir"), path)
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	if !strings.ContainsAny(values[0], "*?[") {
		l.file(where, path)
		return
	}
	matches, err := filepath.Glob(path)
	if err != nil {
		l.fault(where, fmt.Errorf("include %q: %w", values[0], err))
	}
	for _, m := range matches {
		l.file(where, m)
	}
}

// WriteSample writes a configuration file in which every option is documented and
// has its default.
func WriteSample(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# cellserver configuration, in the syntax of redis.conf.\n")
	b.WriteString("# Every option with its default; flags (--name value) and environment\n")
	b.WriteString("# variables (" + environmentPrefix + "NAME) take precedence over this file.\n")
	for _, o := range options() {
		fmt.Fprintf(&b, "\n# %s\n", o.doc)
		if o.mutable {
			b.WriteString("# Can be changed by CONFIG SET.\n")
		}
		value := o.def
		if value == "" {
			value = `""`
		}
		fmt.Fprintf(&b, "%s %s\n", o.name, value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteHelp writes what --help prints.
func WriteHelp(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Usage: cellserver [file.conf] [--name value ...] [-]\n       cellserver help | version | --sample-config\n\nA redis.conf may be given as it is; \"-\" reads one from standard input.\n\nOptions:\n")
	for _, o := range options() {
		fmt.Fprintf(&b, "  --%-28s %s", o.name+" <"+o.kind.hint()+">", o.doc)
		if o.def != "" {
			fmt.Fprintf(&b, " (%s)", o.def)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// AllOptionNames are the names of all options, older ones and those of Redis included.
func AllOptionNames() []string { return DefaultConfig().names() }

// directiveHelp says what the words of a configuration do that are no options.
var directiveHelp = map[string]string{
	"include":        "--include <path>\nReads another file, or all that match a pattern; its path is relative to dir.\n",
	"loadmodule":     "--loadmodule <path>\nIs taken for redis-cell, which is built in. Any other module is refused.\n",
	"rename-command": "--rename-command <name> <new name>\nGives a command another name, in scripts too; \"\" takes it away.\n",
}

// OptionHelp returns what there is to say of one option; ok is false if it does not exist.
func OptionHelp(name string) (text string, ok bool) {
	if text, ok := directiveHelp[name]; ok {
		return text, true
	}
	for _, o := range options() {
		if o.name != name && o.alias != name || name == "" {
			continue
		}
		text = fmt.Sprintf("--%s <%s>\n%s\n", o.name, o.kind.hint(), o.doc)
		if o.def != "" {
			text += "Without it: " + o.def + "\n"
		}
		if o.mutable {
			text += "CONFIG SET changes it.\n"
		}
		return text, true
	}
	for _, g := range redisOptions() {
		for _, o := range g.options {
			if o.name == name || o.alias == name && name != "" {
				return fmt.Sprintf("--%s\nAn option of Redis that means nothing here: %s\n", name, g.why), true
			}
		}
	}
	return "", false
}
