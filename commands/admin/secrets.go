package admin

import (
	"strings"

	"github.com/cellserver/cellserver/commands/env"
)

// optionNames knows the options of a server, so that nothing is shown of a CONFIG SET but the
// names that there are, and the values of those that are no secret. A name that does not exist may
// be a mistyped requirepass, or a password out of its place.
type optionNames struct {
	settings env.Settings // nil before there is a server
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

// secretOption reports whether the value of an option is secret, be it one that Redis has and
// this server does not.
func secretOption(name string) bool {
	switch name {
	case "requirepass", "masterauth", "masteruser", "primaryauth", "primaryuser", "store",
		"tls-key-file-pass", "tls-client-key-file-pass":
		return true
	}
	return false
}
