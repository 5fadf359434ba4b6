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

// complete sets the options o of a, the ask of the call c. most is the limit of the ask.
func complete(c *command.Call, a *decide.Ask, o *clause.CallOptions, most int64) resp.Error {
	if !o.Keep.None() {
		a.Keep, a.Rank = o.Keep.Of(most), o.Keep.Rank(most)
	}
	return identify(c, a, &o.Identity)
}

// identify sets the identity of a, the complete ask of c, from the option ID or RESERVE. With
// RESERVE it makes the ask a reservation. id has the arguments of the option.
func identify(c *command.Call, a *decide.Ask, id *clause.Identity) resp.Error {
	if id.Token == nil {
		return ""
	}
	a.ID = identity(c, id.Token)
	a.Reserve = reservation.Terms{TTL: id.TTL, Max: mostReserves(c)}
	a.ID.Print = a.Fingerprint()
	return ""
}

// mostInStore is the maximum number of calls that a key in a store remembers, and the maximum number of its live
// reservations. Both are in the value of the key, which each call reads and writes as a whole.
const mostInStore = 64

// identity returns the identity of the call c with the given token, without its fingerprint.
func identity(c *command.Call, token []byte) idempotency.Call {
	l := c.Server.Limits()
	id := idempotency.Call{Token: token, TTL: l.IDTTL, Max: l.IDsPerKey, Seed: seed}
	if c.Collector != nil {
		id.Max = min(id.Max, mostInStore)
	}
	return id
}

// mostReserves returns the maximum number of live reservations of a key.
func mostReserves(c *command.Call) uint32 {
	n := c.Server.Limits().ReservesPerKey
	if c.Collector != nil {
		n = min(n, mostInStore)
	}
	return n
}

// seed is the key of the hash for the tokens of keys that remember no call yet. It becomes a part of the value of such
// a key, so other servers with the same store, too, use it for the tokens of that key. No client can learn it.
var seed = rand.Uint64()
