package main

import (
	"slices"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/remote/states"
)

// A directory has a key for each limit of a policy and of its candidate, and keys for their bans. In a store all of
// these are the parts of one value, under the key of the first limit.

// joint turns m, a key of the directory, into the state of a policy and key in the store. It returns false if m does
// not belong to a policy in table. The first part represents the whole state; for other parts joint sets m.part. v is a
// handle of the directory.
func (c *copying) joint(v *keyspace.Handle, table *policy.Table, m *moving) bool {
	name, of, n, ok := policy.ParseState(m.key)
	if !ok || table.Policy(name) == nil {
		return false
	}
	var parts []decide.Part
	for i := 1; i <= policy.MaxState; i++ {
		key, ok := policy.AppendState(nil, name, of, uint8(i))
		if !ok {
			continue
		}
		e, found := v.Load(c.db, key)
		switch k := e.Kind; {
		case !found || !k.IsLimiter() && k != entry.Ban:
		case i < int(n):
			m.part = true
			return true
		default:
			parts = append(parts, decide.Part{Number: uint8(i), Entry: e})
		}
	}
	if len(parts) == 0 || parts[0].Number != n { // the key has expired in the meantime, or does not hold a limiter
		return false
	}
	m.key = policy.AppendStateKey(nil, name, of, 1, false)
	if !glob.Match([]byte(c.match), m.key) {
		m.why = "not of the pattern"
		return true
	}
	if p := &parts[0].Entry; len(parts) == 1 && parts[0].Number == 1 && !p.Kind.Remembers() {
		m.entry = *p // the store reads the entry as the first part
		return true
	}
	if m.entry = states.EntryOf(&decide.State{All: parts}, nil); states.Check(&m.entry) != nil {
		m.why = "the state of a policy, with a part that a store cannot have"
	}
	return true
}

// apart returns the keys of a directory that have the parts of m, a joint state, at now. It returns none if the key of m
// is not that of a policy.
func apart(m *moving, now limit.Instant) (all []moving) {
	name, of, n, ok := policy.ParseState(m.key)
	if !ok || n != 1 {
		return nil
	}
	for _, p := range states.AppendLive(nil, m.entry.Value, now) {
		key, ok := policy.AppendState(nil, name, of, p.Number)
		if !ok {
			return nil
		}
		all = append(all, moving{key: key, entry: p.Entry})
	}
	return all
}

// readJoint copies m, a joint state of the store that was written at stamp, into the directory, or sets m.why. Keys of the
// directory that have another part of the same state are removed. A dry run changes nothing.
func (c *copying) readJoint(ks *keyspace.Keyspace, v *keyspace.Handle, m *moving, stamp limit.Instant) error {
	parts := apart(m, v.Refresh())
	if len(parts) == 0 {
		m.why = "over"
		if _, _, n, ok := policy.ParseState(m.key); !ok || n != 1 {
			m.why = "the state of a policy, under a key that no policy has"
		}
		return nil
	}
	if !glob.Match([]byte(c.match), m.key) {
		m.why = "not of the pattern"
		return nil
	}
	same := 0
	for i := range parts {
		switch why := c.kept(v, &parts[i], stamp); why {
		case "":
		case isThere:
			same++
		default:
			m.why = why
			return nil
		}
	}
	name, of, _, _ := policy.ParseState(m.key)
	var stale [][]byte
	for i := 1; i <= policy.MaxState; i++ {
		key, ok := policy.AppendState(nil, name, of, uint8(i))
		if !ok || slices.ContainsFunc(parts, func(p moving) bool { return slices.Equal(p.key, key) }) {
			continue
		}
		if e, found := v.Load(c.db, key); found && (e.Kind.IsLimiter() || e.Kind == entry.Ban) {
			stale = append(stale, key)
		}
	}
	switch {
	case same == len(parts) && len(stale) == 0:
		m.why = isThere
		return nil
	case len(stale) > 0 && stamp <= c.latest && !c.replace:
		m.why = mayBeNewer
		return nil
	case c.dryRun:
		return nil
	}
	for _, key := range stale {
		v.Delete(c.db, key)
	}
	for i := range parts {
		if err := ks.Restore(c.db, parts[i].key, parts[i].entry); err != nil {
			return err
		}
	}
	return nil
}
