package connection

import (
	"context"
	"log/slog"

	"github.com/cellserver/cellserver/commands/command"
)

// auditLogin notes an attempt to authenticate that has failed. The name that was given
// is not said: who has mistaken the order gives the password.
func auditLogin(c *command.Call) {
	attrs := c.Client.Who()
	c.Server.Log.LogAttrs(context.Background(), slog.LevelWarn, "audit: failed AUTH", attrs[:2]...)
}
