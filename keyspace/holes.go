package keyspace

import (
	"fmt"
	"sync"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/keyspace/object"
)

// holes are the lists that a patch has left with positions that have no value. While
// effects are replayed over a newer base that is as it should be, for what follows
// gives the values, removes the list or finds it expired.
type holes struct {
	mu    sync.Mutex
	names map[keyName]struct{} // guarded by mu
}

// note remembers the list o, which has just been patched, if it has holes.
func (h *holes) note(db int, key []byte, o object.Object) {
	l, ok := o.(*collection.List)
	if !ok || l.Whole() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names == nil {
		h.names = make(map[keyName]struct{})
	}
	h.names[keyName{db, string(key)}] = struct{}{}
}

// Whole is asked when all has been loaded. Its error says that patches have left a
// list without some of its values, which no crash explains.
func (ks *Keyspace) Whole() error {
	ks.holes.mu.Lock()
	names := ks.holes.names
	ks.holes.names = nil
	ks.holes.mu.Unlock()
	v := ks.NewView()
	defer v.Close()
	for name := range names {
		whole := true
		_, err := v.ReadList(name.db, []byte(name.key), func(l *collection.List) { whole = l.Whole() })
		if err == nil && !whole { // it may hold something else by now
			return fmt.Errorf("a list of database %d lacks values that no record has", name.db)
		}
	}
	return nil
}
