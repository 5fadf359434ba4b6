package registry

import (
	"errors"
	"math"
	"slices"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
)

// overlay keeps the entries of records apart from the entries of files of this server. The files are those of rules
// and, with a store, the policy file. Servers may have different files, so an entry of a file is not a record. It hides
// the record with the same kind, policy and pattern.
//
// The builder has the entries of the file, and those records that are not hidden and whose policy can
// use their pattern. The other records are in covered and in unfit.
type overlay struct {
	// file has the entries of all files. plain has the entries of the policy file, and rules has the policies of rules.
	// If both have an entry for the same name, rules takes precedence.
	file         map[name]*policy.Entry
	plain, rules []*policy.Entry
	// covered has the records that entries of the file hide.
	covered *policy.Builder
	// unfit has the records with a pattern that is not a network, although the keys of the policy
	// are addresses. Such records are possible because the files of two servers may differ in the
	// form of the keys.
	unfit *policy.Builder
}

// unbounded are the sizes of builders for a store: no bound applies. Registry.Update bounds the
// number of records: see update.checkRoom.
var unbounded = policy.Sizes{Policies: math.MaxInt, Overrides: math.MaxInt, Others: math.MaxInt}

func (o *overlay) reset() {
	o.covered, o.unfit = policy.NewBuilder(unbounded), policy.NewBuilder(unbounded)
}

func (o *overlay) bytes() int64 {
	if o == nil {
		return 0
	}
	return o.covered.Bytes() + o.unfit.Bytes()
}

func nameOf(e *policy.Entry) name { return name{e.Kind, e.Policy, e.Pattern} }

// Overlay makes the entries of d, which has been checked, the entries of the policy file. It is for
// a Registry with Options.Shared: the entries are in force, but not written to the store. They hide
// records with the same kind, policy and pattern. A record is in force again when the file does not
// hide it any more. now is the present instant, and bounds has the bounds of the limits. changed is
// the number of entries that differ from the entries of the file before. With an error nothing is
// changed. Overlay does not use the store. It waits for other changes.
func (r *Registry) Overlay(d *document.Document, now limit.Instant, bounds policy.Bounds) (changed int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.patient = false
	want, err := r.entriesOf(d, true, now, func(at limit.Instant) limit.Instant { return at }, bounds)
	if err != nil {
		return 0, err
	}
	for _, e := range want {
		if err := e.Check(); err != nil {
			return 0, err
		}
	}
	r.drain()
	r.overlay.plain = want
	changed = r.lay()
	for _, e := range want {
		r.tellMissing(e)
	}
	r.recount()
	r.publish()
	return changed, nil
}

// lay makes the entries of plain and of rules, which are valid, the entries of files that are in force. It returns the
// number of changed entries. The caller holds mu.
func (r *Registry) lay() (changed int) {
	all := slices.Concat(r.overlay.plain, r.overlay.rules)
	file := make(map[name]*policy.Entry, len(all))
	for _, e := range all {
		file[nameOf(e)] = e
	}
	all = slices.DeleteFunc(all, func(e *policy.Entry) bool { return file[nameOf(e)] != e })
	// A policy is removed after its overrides and added before them, so that no override is under
	// the policy of another file.
	var gone []name
	for n := range r.overlay.file {
		switch {
		case file[n] != nil:
		case n.kind == policy.Main:
			gone = append(gone, n)
		default:
			r.uncover(n)
			changed++
		}
	}
	for _, n := range gone {
		r.uncover(n)
		changed++
	}
	for _, mains := range []bool{true, false} {
		for _, e := range all {
			if is := r.overlay.file[nameOf(e)]; (e.Kind == policy.Main) == mains && (is == nil || !same(is, e)) {
				r.cover(e)
				changed++
			}
		}
	}
	return changed
}

// cover adds e to the entries of the policy file, which have the policy of e already. The record that e hides is not in
// unfit, because the policy of the file can use its pattern. The caller holds mu.
func (r *Registry) cover(e *policy.Entry) {
	o, n := r.overlay, nameOf(e)
	if o.file[n] == nil {
		if hidden := r.builder.Get(n.kind, n.policy, n.pattern); hidden != nil {
			keep(o.covered, hidden)
		}
	}
	o.file[n] = e
	kept(r.place(e))
}

// uncover removes the entry called n from the entries of the policy file, and puts the record that
// it has hidden in force, if there is one. The caller holds mu.
func (r *Registry) uncover(n name) {
	o := r.overlay
	delete(o.file, n)
	r.displace(n)
	if hidden := o.covered.Get(n.kind, n.policy, n.pattern); hidden != nil {
		o.covered.Delete(n.kind, n.policy, n.pattern)
		kept(r.place(hidden))
	}
}

// put sets e, the entry of a record. It returns the error of [policy.Builder.Set]. The caller holds mu.
func (r *Registry) put(e *policy.Entry) error {
	if r.overlay == nil {
		return r.builder.Set(e)
	}
	e.File = e.File && !r.shared
	if r.overlay.file[nameOf(e)] != nil {
		return r.overlay.covered.Set(e)
	}
	return r.place(e)
}

// remove removes the entry of the record called n. The caller holds mu.
func (r *Registry) remove(n name) {
	o := r.overlay
	if o != nil && (o.covered.Delete(n.kind, n.policy, n.pattern) || o.unfit.Delete(n.kind, n.policy, n.pattern) || o.file[n] != nil) {
		return
	}
	r.displace(n)
}

// place sets e in the builder or in unfit. It returns the error of [policy.Builder.Set]. The caller holds mu.
func (r *Registry) place(e *policy.Entry) error {
	form := r.form(e.Policy)
	if e.Kind.HasPattern() && !form.Holds(e.Pattern) {
		return r.overlay.unfit.Set(e)
	}
	err := r.builder.Set(e)
	if err == nil && e.Kind == policy.Main {
		r.refit(e.Policy, form)
	}
	return err
}

// displace removes the entry called n from the builder. The caller holds mu.
func (r *Registry) displace(n name) {
	form := r.form(n.policy)
	if r.builder.Delete(n.kind, n.policy, n.pattern) && n.kind == policy.Main && r.overlay != nil {
		r.refit(n.policy, form)
	}
}

// form returns the form of the keys of the policy called policyName. It is the zero form if there is
// no such policy. The caller holds mu.
func (r *Registry) form(policyName string) policy.KeyForm {
	return formOf(r.builder.Get(policy.Main, policyName, ""))
}

func formOf(main *policy.Entry) policy.KeyForm {
	if main == nil {
		return policy.KeyForm{}
	}
	return main.Key
}

// refit moves the entries of a policy between the builder and unfit, after the form of its keys has
// changed. was is the form before. The caller holds mu.
func (r *Registry) refit(policyName string, was policy.KeyForm) {
	is := r.form(policyName)
	if is.IP == was.IP {
		return
	}
	from, to := r.overlay.unfit, r.builder
	if is.IP {
		from, to = to, from
	}
	var moved []*policy.Entry
	from.Each(policyName, func(e *policy.Entry) bool {
		if e.Kind.HasPattern() && is.Holds(e.Pattern) != is.IP {
			moved = append(moved, e)
		}
		return true
	})
	for _, e := range moved {
		from.Delete(e.Kind, e.Policy, e.Pattern)
		keep(to, e)
	}
}

// keep sets e in b, which has no bounds. e is valid.
func keep(b *policy.Builder, e *policy.Entry) { kept(b.Set(e)) }

// kept panics if err is not nil. A builder without bounds accepts every valid entry.
func kept(err error) {
	if err != nil {
		panic(errors.Join(errKeep, err))
	}
}

var errKeep = errors.New("registry: a valid entry cannot be kept")

// begin removes all records, so that only the entries of files are left. The caller holds mu.
func (r *Registry) begin() {
	if r.overlay == nil {
		r.builder = policy.NewBuilder(policy.Sizes{})
		return
	}
	r.builder = policy.NewBuilder(unbounded)
	r.overlay.reset()
	for _, e := range r.overlay.file {
		keep(r.builder, e)
	}
}

// recount lets the policies that were removed and set again continue with the counters that the
// latest table has. The caller holds mu.
func (r *Registry) recount() {
	r.published.Load().table.EachPolicy(func(p *policy.Policy) { r.builder.Recount(p.Name, p.Counts) })
}

// hasRecord reports whether there is an entry called n that is a record. The caller holds mu.
func (r *Registry) hasRecord(n name) bool {
	if o := r.overlay; o != nil {
		for _, b := range []*policy.Builder{o.covered, o.unfit} {
			if b.Get(n.kind, n.policy, n.pattern) != nil {
				return true
			}
		}
		if o.file[n] != nil {
			return false
		}
	}
	return r.builder.Get(n.kind, n.policy, n.pattern) != nil
}

// dropExpired removes the entries that have ended at now. ended has those of them that are records,
// and changed says whether the table changes. The caller holds mu.
func (r *Registry) dropExpired(now limit.Instant) (ended []*policy.Entry, changed bool) {
	dropped := r.builder.DropExpired(now)
	o := r.overlay
	if o == nil {
		return dropped, len(dropped) > 0
	}
	ended = append(o.covered.DropExpired(now), o.unfit.DropExpired(now)...)
	for _, e := range dropped {
		if n := nameOf(e); o.file[n] != nil {
			r.uncover(n)
		} else {
			ended = append(ended, e)
		}
	}
	return ended, len(dropped)+len(ended) > 0
}

// records returns the numbers of policies and entries that are records. If Policies is at most policy.DefaultPolicies,
// it also counts the policies that only the policy file has. It does not count the policies of rules, even if there are
// records for their keys. The caller holds mu.
func (r *Registry) records() policy.Sizes {
	o, all := r.overlay, r.builder.Sizes()
	if o == nil {
		return all
	}
	covered, unfit := o.covered.Sizes(), o.unfit.Sizes()
	all.Overrides += covered.Overrides + unfit.Overrides
	all.Others += unfit.Others
	all.Policies -= len(o.rules)
	for _, e := range o.plain {
		switch n := nameOf(e); {
		case n.kind == policy.Main && r.files.path(n.policy) != "": // it is counted with the rules
		case n.kind == policy.Override:
			all.Overrides--
		case n.kind == policy.Main && all.Policies > policy.DefaultPolicies && !r.hasRecords(n.policy):
			all.Policies--
		}
	}
	return all
}

// hasRecords reports whether there is a record of the policy called policyName. The caller holds mu.
func (r *Registry) hasRecords(policyName string) (has bool) {
	for _, b := range []*policy.Builder{r.overlay.covered, r.overlay.unfit, r.builder} {
		b.Each(policyName, func(e *policy.Entry) bool {
			has = !e.File
			return !has
		})
		if has {
			return true
		}
	}
	return false
}

// checkRoom returns an error if the edits have added records and there are too many now. before has
// the numbers before the edits.
func (u *update) checkRoom(before policy.Sizes) error {
	if u.registry.overlay == nil {
		return nil // the builder checks its own bounds
	}
	switch is := u.registry.records(); {
	case is.Policies > max(before.Policies, policy.DefaultPolicies):
		return policy.ErrTooManyPolicies
	case is.Overrides > max(before.Overrides, policy.DefaultOverrides):
		return policy.ErrTooManyOverrides
	case is.Others > max(before.Others, policy.DefaultOthers):
		return policy.ErrTooManyOthers
	}
	return nil
}

// withUnfit adds the deletions of the entries in unfit that belong to policies which edits delete. The
// caller holds mu.
func (r *Registry) withUnfit(edits []Edit) []Edit {
	if r.overlay == nil {
		return edits
	}
	for _, e := range edits {
		if e.Set == nil && e.Kind == policy.Main {
			r.overlay.unfit.Each(e.Policy, func(e *policy.Entry) bool {
				edits = append(edits, Delete(e))
				return true
			})
		}
	}
	return edits
}

// refit removes the entries from unfit that the edits have set or deleted, and moves those that the
// changed policies can or cannot use now.
func (u *update) refit() {
	r := u.registry
	if r.overlay == nil {
		return
	}
	for _, e := range u.edits {
		r.overlay.unfit.Delete(e.Kind, e.Policy, e.Pattern)
	}
	for i, e := range u.edits {
		if e.Kind == policy.Main {
			r.refit(e.Policy, formOf(u.before[i]))
		}
	}
}

// Unfit returns the number of overrides, boosts, blocks and exemptions in the store that are not in
// force on this server, because their patterns are no networks and the keys of the policy are
// addresses. It is 0 without Options.Shared.
func (r *Registry) Unfit() int { return int(r.unfit.Load()) }

// countUnfit updates Unfit, and passes it to Options.Unfit if it was 0. The caller holds mu.
func (r *Registry) countUnfit() {
	if r.overlay == nil {
		return
	}
	sizes := r.overlay.unfit.Sizes()
	n := sizes.Overrides + sizes.Others
	if was := r.unfit.Swap(int64(n)); was == 0 && n > 0 && r.tellUnfit != nil {
		r.tellUnfit(n)
	}
}
