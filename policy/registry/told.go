package registry

import (
	"sync"
)

// told are the records from a file or a primary that are not in the table yet.
type told struct {
	mu      sync.Mutex
	records []record // guarded by mu
	// void are keys of records that stand for nothing any more. guarded by mu.
	void [][]byte
}

// record is a key of the server's database with its value, which is empty for a removed key. A
// nil key means that all keys were removed.
type record struct {
	key, value []byte
	gone       bool
}

// manyRecords is the number of records that are gathered until the table is read, or until Tell
// moves them into the builder.
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
