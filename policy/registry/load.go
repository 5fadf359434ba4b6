package registry

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/policy"
)

// Table returns the policies in force. It never waits for a change in progress. It costs two atomic
// loads if no record has arrived since the previous call.
func (r *Registry) Table() *policy.Table {
	if r.behind.Load() {
		r.catchUp()
	}
	return r.published.Load().table
}

// catchUp publishes a table with the records that have arrived. If another goroutine holds mu, the
// table stays as it is for now.
func (r *Registry) catchUp() {
	if r.mu.TryLock() {
		defer r.mu.Unlock()
		r.drain()
	}
}

// Settle publishes a table with the records that have arrived before the call, like [Registry.Table], but it waits for a
// change in progress.
func (r *Registry) Settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
}

// Observe applies a record of the system database that was loaded or replicated: see
// [keyspace.Keyspace.ObserveSystem], whose function it is. It copies key and the value of e. It
// does not wait for a change in progress.
func (r *Registry) Observe(key []byte, e entry.Entry) {
	t := &r.told
	t.mu.Lock()
	if key == nil {
		t.records, t.void = nil, nil
	}
	t.records = append(t.records, record{bytes.Clone(key), bytes.Clone(e.Value), e.Kind == entry.None})
	many := len(t.records) >= manyRecords
	t.mu.Unlock()
	r.arrived(many)
}

// ObserveChange applies the records of one change in a store that other servers change, too: keys and values, with an
// empty value for a record that was deleted. It copies them. No table has only a part of them.
func (r *Registry) ObserveChange(records iter.Seq2[[]byte, []byte]) {
	t := &r.told
	t.mu.Lock()
	for key, value := range records {
		t.records = append(t.records, record{bytes.Clone(key), bytes.Clone(value), len(value) == 0})
	}
	many := len(t.records) >= manyRecords
	t.mu.Unlock()
	r.arrived(many)
}

// arrived notes that records have arrived. If they are many, it moves them into the builder, unless a change is in
// progress. It publishes no table: while files are loaded, no call needs one.
func (r *Registry) arrived(many bool) {
	r.behind.Store(true)
	if many && r.mu.TryLock() {
		defer r.mu.Unlock()
		r.absorb()
	}
}

// ObserveAll applies all records of a store that other servers change, too. Records that were there before and are not
// among them are gone. It copies the keys and the values. No table has only a part of them.
func (r *Registry) ObserveAll(records iter.Seq2[[]byte, []byte]) {
	all := []record{{}}
	for key, value := range records {
		all = append(all, record{key: bytes.Clone(key), value: bytes.Clone(value)})
	}
	t := &r.told
	t.mu.Lock()
	t.records, t.void = all, nil
	t.mu.Unlock()
	if !r.mu.TryLock() {
		r.behind.Store(true) // the change in progress, or the next call, takes the records
		return
	}
	defer r.mu.Unlock()
	r.absorb()
	r.publish()
}

// drain publishes a table with the records that have arrived. The caller holds mu.
func (r *Registry) drain() {
	if r.behind.Swap(false) {
		r.absorb()
		r.publish()
	}
}

// absorb moves the records that have arrived into the builder and the history. The caller holds
// mu.
func (r *Registry) absorb() {
	anew := false
	for _, is := range r.told.take() {
		anew = anew || is.key == nil
		r.fails(r.load(is))
	}
	if anew && r.overlay != nil {
		r.recount()
	}
}

// fails stores err and passes it to Options.Failed, if err is not nil and no error was stored
// before. The caller holds mu.
func (r *Registry) fails(err error) {
	if err == nil || r.fault != nil {
		return
	}
	if r.fault = err; r.failed != nil {
		r.failed(err)
	}
}

// load applies one record to the builder or the history. The error says that the record cannot be
// read.
func (r *Registry) load(is record) error {
	switch {
	case is.key == nil:
		r.begin()
		r.history.reset()
		r.unreadable.forget()
		return nil
	case bytes.HasPrefix(is.key, changePrefix):
		if !is.gone && len(is.value) == 0 {
			r.told.addVoid(is.key)
		}
		r.history.load(is)
		return nil
	}
	err := r.loadEntry(is)
	r.unreadable.note(is.key, err)
	if err != nil {
		return fmt.Errorf("record %q of policies: %w", is.key, err)
	}
	return nil
}

// loadEntry applies the record of an entry to the builder. The error says why it cannot be read.
func (r *Registry) loadEntry(is record) error {
	kind, policyName, pattern, err := policy.ParseKey(is.key)
	switch {
	case is.gone && err != nil:
		return nil
	case err != nil:
		return err
	case is.gone:
		r.remove(name{kind, policyName, pattern})
		return nil
	case len(is.value) == 0: // an empty value marks a removed entry; the key is removed later
		r.remove(name{kind, policyName, pattern})
		r.told.addVoid(is.key)
		return nil
	}
	e, err := policy.DecodeEntry(is.key, is.value, recordBounds)
	if err == nil {
		err = r.put(e)
	}
	if err != nil {
		return err
	}
	r.tellMissing(e)
	return nil
}

// tellMissing calls absent for the zones of e that tzdata does not have. The caller holds mu.
func (r *Registry) tellMissing(e *policy.Entry) {
	if e.Limits == nil || r.absent == nil {
		return
	}
	for i := range e.Limits.Clauses {
		w := e.Limits.Clauses[i].Window
		if w == nil || !w.Calendar.Zone.Missing() || r.missing[w.Calendar.Zone.Name()] {
			continue
		}
		r.missing[w.Calendar.Zone.Name()] = true
		r.absent(w.Calendar.Zone.Name(), e.Policy)
	}
}
