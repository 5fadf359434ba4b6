package session

import "github.com/cellserver/cellserver/resp"

const errProtected resp.Error = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. In this mode connections are only accepted from the loopback interface. If you want to connect from external computers, set a password with requirepass, or turn protected mode off."
