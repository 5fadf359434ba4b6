package registry

import (
	"sync"
)

// told are the records that a file or a primary has brought and that are not in the table yet.
type told struct {
	mu      sync.Mutex
	records []record // guarded by mu
	// void are keys of records that stand for nothing any more. guarded by mu.
	void [][]byte
}

// record is a key of the database of the server, and what it holds; nothing if it is gone. A nil
// key says that all are gone.
type record struct {
	key, value []byte
	gone       bool
}

// manyTold is how many records wait until somebody looks, or until Tell takes them into the builder.
const manyTold = 256

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
