package server

import (
	"fmt"
	"io"
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// parseFile reads redis.conf syntax: a name and its values on a line, quotes as on
// the command line of redis-cli, '#' before a comment.
func (c *Config) parseFile(path, content string) (faults []error) {
	for n, line := range strings.Split(content, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		where := fmt.Sprintf("%s:%d", path, n+1)
		fields, ok := resp.SplitWords([]byte(line))
		switch {
		case !ok:
			faults = append(faults, fmt.Errorf("%s: unbalanced quotes", where))
			continue
		case len(fields) < 2:
			faults = append(faults, fmt.Errorf("%s: option %q lacks its value", where, fields[0]))
			continue
		}
		values := make([]string, 0, len(fields)-1)
		for _, f := range fields[1:] {
			values = append(values, string(f))
		}
		if err := c.assignWords(where, string(fields[0]), values); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
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
	b.WriteString("Usage: cellserver [file.conf] [--name value ...]\n       cellserver --version | --help | --sample-config\n\nOptions:\n")
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
