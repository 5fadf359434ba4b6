package admin

import (
	"strings"

	"github.com/cellserver/cellserver/commands/command"
)

// mostAudited is how many options of one CONFIG SET a line names.
const mostAudited = 64

// knownOptions returns the names that a CONFIG SET names, but for those that do not
// exist: they may be values that are out of place.
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
