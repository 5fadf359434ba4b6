package admin

import (
	"strings"

	"github.com/cellserver/cellserver/command"
)

// mostAudited is the maximum number of options of one CONFIG SET whose names a log line has.
const mostAudited = 64

// knownOptions returns the names of the options in a CONFIG SET, separated by spaces. After
// mostAudited names it returns "..." for the rest. It replaces an unknown name by "?", because that
// may be a value in the wrong place, such as a password.
func knownOptions(c *command.Call) string {
	var names []string
	for i := 2; i < len(c.Args); i += 2 {
		if len(names) == mostAudited {
			names = append(names, "...")
			break
		}
		name := strings.ToLower(string(c.Args[i]))
		known := c.Server.Options.Settings.Get(func(n string) bool { return n == name })
		if len(known) == 0 {
			name = "?"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
