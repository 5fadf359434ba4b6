package command

import (
	"fmt"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// A handler in the field Run of an entry can use [env.Store], which every server has. A handler that
// needs more says so in its type: it has a parameter of type CallOn, and its entry has RunOn in
// place of Run. The store of a server with --store has none of the methods for keys, so a handler that
// runs there cannot call one: it would not compile. Some commands run in both ways, such as EXEC and
// those that wait for room. They ask for the local store where they know that there is one.

// CallOn is a call whose store is an S, an interface that has some of the interfaces of package env
// about keys. A group declares the interface that it needs once, with a name for its calls:
//
//	type call = command.CallOn[env.Strings]
//
// Store hides the field of [Worker] with this name. A function that continues the command on another
// worker gets the store of that worker: see [CallOn.InSlices] and [CallOn.Offload].
type CallOn[S any] struct {
	*Call
	Store S
}

// Handler is a function that runs the calls of a command on a store of a certain type. [On] makes
// it.
type Handler interface {
	// need identifies the type of the store: two handlers that need the same type return equal
	// values.
	need() any
	// of returns a pointer to st as that type; nil if st lacks some of its methods.
	of(st env.Store) any
	// runOf returns the Run function, for workers whose stores[at] is the result of the method of.
	runOf(at int) func(c *Call)
}

// On returns the Handler that runs the calls of a command by run. The type S of the store follows
// from run, and must be an interface. The handler is not used on a server with --store: the command
// is not in its table, or is run by [Command].Parse and Answer.
func On[S any](run func(c CallOn[S])) Handler { return handler[S](run) }

type handler[S any] func(c CallOn[S])

func (handler[S]) need() any { return (*S)(nil) }

func (handler[S]) of(st env.Store) any {
	if s, is := st.(S); is {
		return &s
	}
	return nil
}

// runOf looks the store up in the worker: a conversion of the worker's store for each call would
// take several nanoseconds.
func (run handler[S]) runOf(at int) func(c *Call) {
	return func(c *Call) { run(CallOn[S]{c, *c.stores[at].(*S)}) }
}

// storeOf returns the index, in the stores of a worker, of the store that h needs.
func (t *Table) storeOf(h Handler) int {
	for i, other := range t.handlers {
		if other.need() == h.need() {
			return i
		}
	}
	t.handlers = append(t.handlers, h)
	return len(t.handlers) - 1
}

// bind sets w.local and w.stores from the store of the worker w. It panics if the store lacks what a
// command of the table needs, or a method of [env.Local]: a server without keys has a table of
// [NewStoreTable].
func (t *Table) bind(w *Worker) {
	if w.local, _ = w.Store.(env.Local); w.local == nil && !t.Remote {
		panic(fmt.Sprintf("command: %T is no store with keys", w.Store)) // locks of this store would lock nothing
	}
	w.stores = make([]any, len(t.handlers))
	for i, h := range t.handlers {
		if w.stores[i] = h.of(w.Store); w.stores[i] == nil {
			panic(fmt.Sprintf("command: a command needs a store that is a %T, and %T is none", h.need(), w.Store))
		}
	}
}

// on returns the call c of another worker, with the store of that worker. All workers of a server
// have stores of the same type.
func (CallOn[S]) on(c *Call) CallOn[S] { return CallOn[S]{c, any(c.Store).(S)} }

// OffloadSized does what [Call.OffloadSized] does, for functions that use the store as an S.
func (c CallOn[S]) OffloadSized(size func(st S) int, f func(st S, w *resp.Writer)) {
	var sizeOn func(st env.Store) int
	if size != nil {
		sizeOn = func(st env.Store) int { return size(st.(S)) }
	}
	c.Call.OffloadSized(sizeOn, func(st env.Store, w *resp.Writer) { f(st.(S), w) })
}

// Offload is [Call.Offload] for a function that uses the store as an S.
func (c CallOn[S]) Offload(f func(st S, w *resp.Writer)) { c.OffloadSized(nil, f) }

// InSlices is [Call.InSlices] for functions that use the store as an S. done may be nil.
func (c CallOn[S]) InSlices(words [][]byte, do func(c CallOn[S], word []byte), done func(c CallOn[S])) {
	var doneOn func(c *Call)
	if done != nil {
		doneOn = func(other *Call) { done(c.on(other)) }
	}
	c.Call.InSlices(words, func(other *Call, word []byte) { do(c.on(other), word) }, doneOn)
}
