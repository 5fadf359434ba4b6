package registry

import (
	"bytes"

	"github.com/cellserver/cellserver/policy"
)

// unreadable has the records of entries that cannot be read. It belongs to one registry, whose mu the caller of each
// method holds.
type unreadable struct {
	records map[string]error // the error of each unreadable record, by its key
	changed bool             // whether records has changed since the errors were published
}

// note records that the record with the given key cannot be read because of err. A nil err means that it can be read or
// was removed.
func (u *unreadable) note(key []byte, err error) {
	if err == nil {
		if _, there := u.records[string(key)]; there {
			delete(u.records, string(key))
			u.changed = true
		}
		return
	}
	if u.records == nil {
		u.records = map[string]error{}
	}
	u.records[string(key)], u.changed = err, true
}

// forget forgets all records.
func (u *unreadable) forget() { u.records, u.changed = nil, u.changed || len(u.records) > 0 }

// policies returns the error of each policy with unreadable records, by the name of the policy; nil
// if there is none.
func (u *unreadable) policies() map[string]error {
	var all map[string]error
	for key, err := range u.records {
		// The kind may be unknown here, from a later release, but the keys of all kinds have the
		// same form.
		_, rest, _ := bytes.Cut([]byte(key), []byte{'/'})
		name, _, _ := bytes.Cut(rest, []byte{'/'})
		if policy.CheckName(name) != nil {
			continue
		}
		if all == nil {
			all = map[string]error{}
		}
		all[string(name)] = err
	}
	return all
}

// UnreadablePolicy returns the error of a record of the policy called name that cannot be read, so that the table lacks
// it; nil if all can be read. It costs one atomic load if all records of all policies can be read.
func (r *Registry) UnreadablePolicy(name []byte) error {
	if all := r.unread.Load(); all != nil {
		return (*all)[string(name)]
	}
	return nil
}

// UnreadablePolicies returns the number of policies with records that cannot be read.
func (r *Registry) UnreadablePolicies() int {
	if all := r.unread.Load(); all != nil {
		return len(*all)
	}
	return 0
}

// publishUnreadable publishes the policies that cannot be read. The caller holds mu.
func (r *Registry) publishUnreadable() {
	if !r.unreadable.changed {
		return
	}
	r.unreadable.changed = false
	if all := r.unreadable.policies(); all != nil {
		r.unread.Store(&all)
		return
	}
	r.unread.Store(nil)
}
