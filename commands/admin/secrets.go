package admin

import (
	"strings"

	"github.com/cellserver/cellserver/commands/env"
)

// optionNames has the names of the server's options. Of a CONFIG SET only existing names are
// shown, and only values that are no secrets. An unknown name may be a mistyped requirepass, or a
// password in the wrong place.
type optionNames struct {
	settings env.Settings // nil before the server exists
}

// secrets implements [stats.Secrets] for CONFIG SET.
func (o *optionNames) secrets(args [][]byte, hide func(i int)) {
	known := make(map[string]bool, len(args)/2)
	for i := 2; i < len(args); i += 2 {
		known[strings.ToLower(string(args[i]))] = false
	}
	if o.settings != nil {
		for _, pair := range o.settings.Get(func(name string) bool { _, given := known[name]; return given }) {
			known[pair[0]] = true
		}
	}
	for i := 2; i < len(args); i += 2 {
		name := strings.ToLower(string(args[i]))
		if !known[name] {
			hide(i)
		}
		if i+1 < len(args) && (!known[name] || secretOption(name)) {
			hide(i + 1)
		}
	}
}

// secretOption reports whether the value of an option is secret, including options of Redis that
// this server does not have.
func secretOption(name string) bool {
	switch name {
	case "requirepass", "masterauth", "masteruser", "primaryauth", "primaryuser", "store",
		"tls-key-file-pass", "tls-client-key-file-pass":
		return true
	}
	return false
}
