package limiters

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
)

// store is a store with keys. The commands that only decide do without it, so that they also run
// with --store.
type store interface {
	env.Store
	env.Locker
	env.Keys
	env.Inspector
}

// storeCall is a call of a command that looks at keys.
type storeCall = command.CallOn[store]
