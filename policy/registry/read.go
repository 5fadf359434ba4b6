package registry

import "github.com/cellserver/cellserver/policy"

// Fault returns the error of the first record of an entry that could not be read, or nil if there
// was none. It waits for a change in progress.
func (r *Registry) Fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	return r.fault
}

// Unreadable returns n, the number of kept changes that cannot be read, and why, the error of the
// oldest of them; nil if all can be read. [Registry.Changes] leaves such changes out, but their
// records are kept. Unreadable decodes all changes, and waits for a change in progress.
func (r *Registry) Unreadable() (n int, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	return r.history.unreadable()
}

// Tidy removes the entries that have ended, and their records. It does nothing while a change is in
// progress. If primary is false, Tidy removes nothing: a replica keeps these entries until its
// primary removes them, or until the replica becomes a primary.
func (r *Registry) Tidy(st Store, primary bool) {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	if !primary {
		r.drain()
		return
	}
	now, err := st.Refresh() // Refresh comes before drain, because it may bring records
	r.drain()
	if err != nil {
		return
	}
	ended, changed := r.dropExpired(now)
	if changed {
		r.publish()
	}
	r.forget(st, ended)
}

// forget removes the records of ended entries. It also removes the records that told has noted as
// void, unless their entries were set again. The caller holds mu.
func (r *Registry) forget(st Store, ended []*policy.Entry) {
	keys := make([][]byte, 0, len(ended))
	for _, e := range ended {
		keys = append(keys, e.AppendKey(nil))
	}
	for _, key := range r.told.takeVoid() {
		kind, policyName, pattern, err := policy.ParseKey(key)
		if err != nil || !r.hasRecord(name{kind, policyName, pattern}) { // the entry was removed by another change, or was not set again
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 && st.Delete(keys...) != nil {
		for _, key := range keys {
			r.told.addVoid(key)
		}
	}
}

// Which selects changes of the history.
type Which struct {
	Count int // the maximum number of changes
	// Policy and Pattern select the changes of this policy and pattern; "" selects all. An address or a network
	// also selects the changes of its stored form: see [policy.KeyForm.Pattern].
	Policy, Pattern string

	network string // the stored form of Pattern, if it is an address or a network; otherwise ""
}

// has reports whether w selects c. It does not consider Count.
func (w *Which) has(c *Change) bool {
	return (w.Policy == "" || c.Policy == w.Policy) &&
		(w.Pattern == "" || c.Pattern == w.Pattern || w.network != "" && c.Pattern == w.network)
}

// Changes returns the changes that which selects, the newest first. It waits for a change in
// progress.
func (r *Registry) Changes(which Which) []Change {
	var all []Change
	for is := range r.Latest(which).All() {
		all = append(all, is)
	}
	return all
}

// Latest does what [Registry.Changes] does, for a caller that decodes the changes one by one.
func (r *Registry) Latest(which Which) Latest {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	which.network, _ = policy.CanonicalNetwork(which.Pattern)
	return r.history.newest(&which)
}
