package connection

import (
	"context"
	"log/slog"

	"github.com/cellserver/cellserver/commands/command"
)

// auditLogin logs a failed attempt to authenticate. It logs the given name only if a user has it:
// a client that passes the arguments in the wrong order gives the password as the name.
func auditLogin(c *command.Call, name string) {
	tried := "(no such user)"
	if c.Server.Users.Find(name) != nil {
		tried = string(command.Echo([]byte(name), command.MaxEcho))
	}
	attrs := append(c.Client.LogAttrs()[:2], slog.String("tried", tried))
	c.Server.Log.LogAttrs(context.Background(), slog.LevelWarn, "audit: failed AUTH", attrs...)
}
