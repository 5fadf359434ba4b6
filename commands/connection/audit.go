package connection

import (
	"context"
	"log/slog"

	"github.com/cellserver/cellserver/command"
)

// auditLogin logs a failed attempt to authenticate as name. It logs the name only if there is a
// user of that name: a client that passes the arguments in the wrong order gives the password as
// the name.
func auditLogin(c *command.Call, name string) {
	tried := "(no such user)"
	if c.Server.Users.Find(name) != nil {
		tried = string(command.Echo([]byte(name), command.MaxEcho))
	}
	attrs := append(c.Client.LogAttrs()[:2], slog.String("tried", tried))
	c.Server.Log.LogAttrs(context.Background(), slog.LevelWarn, "audit: failed AUTH", attrs...)
}
