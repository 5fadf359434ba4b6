package session

import (
	"crypto/sha256"

	"github.com/cellserver/cellserver/commands/command"
)

// What a turn and a client may use. These are not options: a larger turn would
// let one client delay another, a smaller one would cost throughput.
const (
	turnBytes    = 64 << 10 // of replies, after which others have their turn
	turnCommands = 1024
	unauthBytes  = 16 << 10 // in and out before authentication
)

// SetLimits puts new limits in force, for live clients too.
func (e *Engine) SetLimits(l command.Limits) {
	l.PasswordHash = sha256.Sum256([]byte(l.Password))
	e.Bounds.Store(&l)
	e.LimitsChanged()
}
