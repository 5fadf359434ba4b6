package limiters

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
)

// store is the part of the store that commands which look at keys use. Commands that only decide
// need an [env.Store], so they also run with --store, where a Remote has the keys.
type store interface {
	env.Store
	env.Locker
	env.Keys
	env.Inspector
}

// storeCall is a call of a command that looks at keys.
type storeCall = command.CallOn[store]
