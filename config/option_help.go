package config

import (
	"fmt"
	"io"
	"strings"
)

// Described is the documentation of an option, for pages and for completions of shells.
type Described struct {
	Name string
	// Hint is the text that stands for a value, such as yes|no or bytes.
	Hint string
	// Default is the default value, which may be "".
	Default string
	// Text says what the option does.
	Text string
	// Group is the title under which the option is listed.
	Group string
}

// Describe returns the documentation of all options of this server, in the order of the sample
// file. The options of a group are adjacent.
func Describe() []Described {
	var list []Described
	for _, g := range optionGroups() {
		for _, o := range g.options {
			list = append(list, Described{Name: o.name, Hint: o.kind.hint(), Default: o.def, Text: o.doc, Group: g.title})
		}
	}
	return list
}

// WriteSample writes a configuration file to w in which every option is documented and has its
// default.
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
		if o.flagOnly {
			b.WriteString("# Only the command line can set another value.\n")
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

// Names returns all names that a line of a configuration file may begin with, sorted: the options
// of this server with their older names, the options of Redis, and include, loadmodule,
// rename-command and user.
func Names() []string { return Default().names() }

// directiveHelp has the help of the words that may begin a line of a configuration file but are no
// options.
var directiveHelp = map[string]string{
	"include":        "--include <path>\nReads another file, or all that match a pattern; its path is relative to dir.\n",
	"loadmodule":     "--loadmodule <path>\nIs taken for redis-cell, which is built in. Any other module is refused.\n",
	"user":           "--user <name> <rule> [<rule> ...]\nDefines a user by the rules of ACL SETUSER. aclfile reads them from a file of their own.\n",
	"rename-command": "--rename-command <name> <new name>\nGives a command another name, in scripts too; \"\" takes it away.\n",
}

// Help returns the help of the option or word called name; ok is false if there is none.
func Help(name string) (text string, ok bool) {
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
