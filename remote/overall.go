package remote

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	store "github.com/cellserver/cellserver/remote/engine"
)

// lister lists, counts and deletes the keys in the engine: see [store.Engine].
type lister interface {
	Scan(cursor uint64, count int, done func(next uint64, found []store.Found, err error))
	Count(done func(n int64, err error))
	Flush(done func(err error))
}

// allKeys implements overall for the engine.
type allKeys struct {
	lister
	timing timing
}

// Overall implements overall. If it does not know the operation of a, a gets an error.
func (k allKeys) Overall(a *decide.Ask, done func()) {
	a.Now, a.Err, a.Result = k.timing.Now(), nil, decide.AdminResult{}
	end := func(err error) {
		if err != nil {
			a.Err = decide.Unavailable("the store does not answer: " + string(reasonOf(err)))
		}
		done()
	}
	switch a.Admin.Op {
	case decide.Scan:
		k.Scan(a.Admin.Cursor, a.Admin.Count, func(next uint64, found []store.Found, err error) {
			a.Result.Cursor, a.Result.Keys = next, k.named(found)
			end(err)
		})
	case decide.Count:
		k.Count(func(n int64, err error) {
			a.Result.Number = n
			end(err)
		})
	case decide.Flush:
		k.Flush(end)
	default:
		end(&store.Error{Reason: "unsupported"})
	}
}

// named returns the found keys with their types. It leaves out keys that have expired but that the
// engine has not removed yet. A key whose value was not written by a server of this package has the
// type string.
func (k allKeys) named(found []store.Found) []decide.Named {
	now := k.timing.Now()
	names := make([]decide.Named, 0, len(found))
	for _, f := range found {
		v, err := decode(f.Value)
		if err != nil {
			names = append(names, decide.Named{Key: f.Key, Type: "string"}) // no server of this package has written it
			continue
		}
		if e := v.at(now); e.Kind != entry.None {
			names = append(names, decide.Named{Key: f.Key, Type: e.Kind.Type()})
		}
	}
	return names
}
