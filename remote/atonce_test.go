package remote

import (
	"bytes"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// atOnce is an engine with any number of values that answers before its methods return, and a clock that stands still. One
// goroutine uses it.
type atOnce struct {
	still
	values map[string][]byte
}

// NewAtOnce returns a store over an engine that answers before a call returns.
func NewAtOnce() *Store {
	e := &atOnce{values: map[string][]byte{}}
	return newStore(e, e, &refusing{}, bounds())
}

func (e *atOnce) Get(key []byte, done func([]byte, error)) { done(e.values[string(key)], nil) }

func (e *atOnce) Swap(w Write, done func(bool, []byte, error)) {
	if now := e.values[string(w.Key)]; !bytes.Equal(compared(now), w.Old) {
		done(false, now, nil)
		return
	}
	e.values[string(w.Key)] = w.New
	done(true, nil, nil)
}

func (e *atOnce) SwapAll(ws []Write, done func(bool, [][]byte, error)) {
	var there [][]byte
	same := true
	for i := range ws {
		now := e.values[string(ws[i].Key)]
		there, same = append(there, now), same && bytes.Equal(compared(now), ws[i].Old)
	}
	if !same {
		done(false, there, nil)
		return
	}
	for i := range ws {
		e.values[string(ws[i].Key)] = ws[i].New
	}
	done(true, nil, nil)
}

func (*atOnce) Now() limit.Instant { return epoch }

func (*atOnce) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}
