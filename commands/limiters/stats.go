package limiters

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
)

// decided notes the outcome of a limiter command for key.
func decided(c *command.Call, key []byte, d *limit.Decision) {
	if d.Refused != 0 {
		c.Denied++
	}
	note(c, key, d.Refused != 0)
}
