package limiters

import (
	"math/rand/v2"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/resp"
)

// complete sets the options o of a, the ask of c, whose limit is most.
func complete(c *command.Call, a *decide.Ask, o *clause.CallOptions, most int64) resp.Error {
	if !o.Keep.None() {
		a.Keep, a.Rank = o.Keep.Of(most), o.Keep.Rank(most)
	}
	return identify(c, a, &o.Identity)
}

// identify gives a, the complete ask of c, the identity that its option ID or RESERVE names, and makes
// it a reservation with RESERVE. id has the arguments of the option.
func identify(c *command.Call, a *decide.Ask, id *clause.Identity) resp.Error {
	switch {
	case id.Token == nil:
		return ""
	case c.Collector != nil && id.TTL != 0:
		return resp.ErrReserveStore
	case c.Collector != nil:
		return resp.ErrTokenStore
	}
	a.ID = identity(c, id.Token)
	a.Reserve = reservation.Terms{TTL: id.TTL, Max: c.Server.Limits().ReservesPerKey}
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
