package registry

import "github.com/cellserver/cellserver/policy"

// Fault returns the error of the first record of an entry that could not be read; nil if all
// could.
func (r *Registry) Fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	return r.fault
}

// Unreadable returns how many of the kept changes cannot be read, and why one of them cannot. They
// are left out of [Registry.Changes], and keep their records. It decodes all changes.
func (r *Registry) Unreadable() (n int, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	return r.history.unreadable()
}

// Tidy removes the entries that have ended, and their records. It does nothing while a change is
// being made. A server that must not change anything, such as a replica, keeps them until its
// primary removes them or it becomes a primary.
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

// forget removes the records of entries that have ended, and those that a file still had.
func (r *Registry) forget(st Store, ended []*policy.Entry) {
	for _, e := range ended {
		st.Delete(e.AppendKey(nil))
	}
	for _, key := range r.told.takeVoid() {
		kind, name, pattern, err := policy.ParseKey(key)
		if err != nil || r.builder.Get(kind, name, pattern) == nil { // a change, or it was not set again
			st.Delete(key)
		}
	}
}

// Which says which changes are wanted.
type Which struct {
	Count int // at most
	// Policy and Pattern select changes; "" selects all.
	Policy, Pattern string
}

// has reports whether a change is one of those.
func (w *Which) has(c *Change) bool {
	return (w.Policy == "" || c.Policy == w.Policy) && (w.Pattern == "" || c.Pattern == w.Pattern)
}

// Changes returns the changes that are wanted, the newest first.
func (r *Registry) Changes(which Which) []Change {
	var all []Change
	for is := range r.Latest(which).All() {
		all = append(all, is)
	}
	return all
}

// Latest is Changes for a caller that wants one after the other.
func (r *Registry) Latest(which Which) Latest {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	return r.history.newest(&which)
}
