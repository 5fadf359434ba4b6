package keyspace

import "github.com/cellserver/cellserver/decide"

// several is the ask of an RL.MULTI, and where its keys are.
type several struct {
	ask   *decide.Ask
	spots []spot
	grows bool // a clause would make a new key
}

func (a *several) key(i int) []byte { return a.ask.Clauses[i].Key }
