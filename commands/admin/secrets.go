package admin

import (
	"strings"

	"github.com/cellserver/cellserver/env"
)

// optionNames decides which arguments of CONFIG SET the slow log and MONITOR may show: names of
// existing options, and values that are not secrets. An unknown name is hidden with its value,
// because it may be a mistyped requirepass, or a password in the wrong place.
type optionNames struct {
	settings env.Settings // the settings of the server; nil until the server exists
}

// secrets is the Secrets function of CONFIG SET: it calls hide with the index of each argument that
// must not be shown.
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

// secretOption reports whether the value of the option called name is a secret. It also returns
// true for names that are options of Redis but not of this server.
func secretOption(name string) bool {
	switch name {
	case "requirepass", "masterauth", "masteruser", "primaryauth", "primaryuser", "store",
		"tls-key-file-pass", "tls-client-key-file-pass":
		return true
	}
	return false
}
