package registry

import (
	"sync"
)

// told has the records from a file or a primary that the builder does not contain yet.
type told struct {
	mu      sync.Mutex
	records []record // the records in the order of their arrival; guarded by mu
	// void has the keys of records that have no meaning any more and have to be deleted. It is
	// guarded by mu.
	void [][]byte
}

// record is a change of a key of the system database to value. gone says that the key was removed.
// A nil key means that all keys were removed.
type record struct {
	key, value []byte
	gone       bool
}

// manyRecords is the number of records that are collected before Observe moves them into the
// builder, unless the table is read before.
const manyRecords = 256

func (t *told) take() (all []record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, t.records = t.records, nil
	return all
}

func (t *told) takeVoid() (all [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, t.void = t.void, nil
	return all
}

func (t *told) addVoid(key []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.void = append(t.void, key)
}
