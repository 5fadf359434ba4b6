package registry

import "github.com/cellserver/cellserver/policy"

// Fault returns the error of the first record of an entry that could not be read, nil if all could.
func (r *Registry) Fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	return r.fault
}

// Unreadable returns how many of the kept changes cannot be read, and the error of one of them.
// [Registry.Changes] omits them, and their records are kept. Unreadable decodes all changes.
func (r *Registry) Unreadable() (n int, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	return r.history.unreadable()
}

// Tidy removes the entries that have ended, and their records. It does nothing while a change is in
// progress. A server that must not change anything, such as a replica, keeps them until its primary
// removes them or it becomes a primary.
func (r *Registry) Tidy(st Store, primary bool) {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	r.drain()
	if !primary {
		return
	}
	ended := r.builder.DropExpired(st.Refresh())
	if len(ended) > 0 {
		r.publish()
	}
	r.forget(st, ended)
}

// forget removes the records of ended entries, and further records of removed entries that a file
// still contained.
func (r *Registry) forget(st Store, ended []*policy.Entry) {
	for _, e := range ended {
		st.Delete(e.AppendKey(nil))
	}
	for _, key := range r.told.takeVoid() {
		kind, name, pattern, err := policy.ParseKey(key)
		if err != nil || r.builder.Get(kind, name, pattern) == nil { // it is a change, or the entry was not set again
			st.Delete(key)
		}
	}
}

// Which selects changes.
type Which struct {
	Count int // the maximum number
	// Policy and Pattern select changes; "" selects all.
	Policy, Pattern string
}

// has reports whether a change is selected.
func (w *Which) has(c *Change) bool {
	return (w.Policy == "" || c.Policy == w.Policy) && (w.Pattern == "" || c.Pattern == w.Pattern)
}

// Changes returns the selected changes, the newest first.
func (r *Registry) Changes(which Which) []Change {
	var all []Change
	for is := range r.Latest(which).All() {
		all = append(all, is)
	}
	return all
}

// Latest is like Changes, for a caller that decodes the changes one by one.
func (r *Registry) Latest(which Which) Latest {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	return r.history.newest(&which)
}
