package limiters

import (
	"math/rand/v2"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/resp"
)

// identify gives a, the complete ask of c, the identity that its option ID names. token is the
// argument of ID, or nil without ID.
func identify(c *command.Call, a *decide.Ask, token []byte) resp.Error {
	if token == nil {
		return ""
	}
	if c.Collector != nil {
		return resp.ErrTokenStore
	}
	a.ID = identity(c, token)
	a.ID.Print = a.Fingerprint()
	return ""
}

// identity returns the identity of the call c with the given token, without its fingerprint.
func identity(c *command.Call, token []byte) idempotency.Call {
	l := c.Server.Limits()
	return idempotency.Call{Token: token, TTL: l.IDTTL, Max: l.IDsPerKey, Seed: seed}
}

// seed is the key of the hash for the tokens of keys that remember no call yet. No client can learn
// it.
var seed = rand.Uint64()
