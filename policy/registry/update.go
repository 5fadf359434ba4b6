package registry

import (
	"errors"
	"fmt"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/yield"
)

// Author is the author of a change, for the history.
type Author struct {
	User, Address string
	// What is the name of the command, or policy-file.
	What string
	// File says that the author is the policy file, which may change the entries that it defines.
	File bool
	// Urgent says that the change does not wait for the end of a long change: the long change is
	// undone and starts again afterwards, unless it has given way to several urgent changes
	// already.
	Urgent bool
	// Force says that the change is made although Options.Readable refuses it.
	Force bool
}

// Edit is one part of a change. It sets an entry, in place of one with the same kind, policy and
// pattern, or it deletes an entry.
type Edit struct {
	// Set is the entry to set. If it is nil, the entry with Kind, Policy and Pattern is deleted.
	Set             *policy.Entry
	Kind            policy.Kind
	Policy, Pattern string
}

// Delete returns the edit that deletes e.
func Delete(e *policy.Entry) Edit {
	return Edit{Kind: e.Kind, Policy: e.Policy, Pattern: e.Pattern}
}

// Set returns the edit that sets e.
func Set(e *policy.Entry) Edit {
	return Edit{Set: e, Kind: e.Kind, Policy: e.Policy, Pattern: e.Pattern}
}

// FileError is the error of a change to an entry that the policy file or a rule of files defines.
type FileError struct {
	Policy, Pattern, Path string
	// Rule says that a rule defines the entry, and Path names the files of the rules.
	Rule bool
}

// Error names the policy, the pattern if there is one, and the file.
func (e *FileError) Error() string {
	if e.Rule {
		return fmt.Sprintf("policy '%s' is defined by the rules of %s", e.Policy, e.Path)
	}
	what := fmt.Sprintf("policy '%s'", e.Policy)
	if e.Pattern != "" {
		what = fmt.Sprintf("override '%s' of %s", e.Pattern, what)
	}
	return what + " is defined by the policy file " + e.Path
}

// Update changes entries. plan gets the current entries and the present instant, and returns the edits; it must be
// fast. Either all edits take effect or none. It returns the error of plan or of the store, one for an invalid entry or
// for too many entries, a *[FileError] or a *[PatternError]. Update waits for other changes, so no event loop may call
// it. plan may be called again if the change gives way to an urgent one. Update also removes the entries that have
// ended.
func (r *Registry) Update(st Store, by Author, plan func(b *policy.Builder, now limit.Instant) ([]Edit, error)) error {
	if by.Urgent {
		r.urgent.Add(1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if by.Urgent {
		defer r.endUrgent()
		r.patient = false
		return r.updateFresh(st, by, plan)
	}
	for given := 0; ; given++ {
		for r.urgent.Load() > 0 {
			r.calm.Wait()
		}
		r.patient = given < mostGivenWay
		if err := r.updateFresh(st, by, plan); !errors.Is(err, errGivesWay) {
			return err
		}
	}
}

// mostStale is the maximum number of times that a change starts again because another server has
// changed the records first. Each restart means that another change was successful.
const mostStale = 100

// updateFresh repeats update as long as its error is [ErrStale], up to mostStale times. The caller
// holds mu.
func (r *Registry) updateFresh(st Store, by Author, plan func(b *policy.Builder, now limit.Instant) ([]Edit, error)) (err error) {
	for range mostStale {
		if err = r.update(st, by, plan); !errors.Is(err, ErrStale) {
			break
		}
	}
	return err
}

// mostGivenWay is the maximum number of times that a change starts again because of urgent changes.
// After that it runs to its end without a pause.
const mostGivenWay = 8

// errGivesWay is the error of a change that was undone because an urgent one waits.
var errGivesWay = errors.New("registry: the change gives way to an urgent one")

// endUrgent ends an urgent change. The caller holds mu.
func (r *Registry) endUrgent() {
	if r.urgent.Add(-1) == 0 {
		r.calm.Broadcast()
	}
}

// update makes one attempt of Update. The caller holds mu.
func (r *Registry) update(st Store, by Author, plan func(b *policy.Builder, now limit.Instant) ([]Edit, error)) error {
	now, err := st.Refresh() // Refresh comes before drain, because it may bring records
	r.drain()
	if err != nil {
		return err
	}
	if ended, changed := r.dropExpired(now); changed {
		defer func() { r.publish() }()
		r.forget(st, ended)
	}
	edits, err := plan(r.builder, now)
	if err != nil || len(edits) == 0 {
		return err
	}
	if err := r.allowed(by, edits); err != nil {
		return err
	}
	if err := r.readableByAll(by, edits); err != nil {
		return err
	}
	edits = r.withUnfit(edits)
	u := update{registry: r, store: st, by: by, now: now}
	if err := u.make(edits); err != nil {
		u.undo()
		return err
	}
	u.refit()
	r.publish()
	return nil
}

// make applies edits to the builder, checks the result and writes it. With an error the builder may
// have some of edits.
func (u *update) make(edits []Edit) error {
	before := u.registry.records()
	if err := u.apply(edits); err != nil {
		return err
	}
	if err := u.checkKeys(edits); err != nil {
		return err
	}
	if err := u.checkRoom(before); err != nil {
		return err
	}
	return u.write(edits)
}

// allowed returns a *[FileError] if one of edits changes the policy of a rule, or one that the policy file
// defines, and the author is not the file.
func (r *Registry) allowed(by Author, edits []Edit) error {
	for _, e := range edits {
		switch is := r.builder.Get(e.Kind, e.Policy, e.Pattern); {
		case is == nil:
		case r.ruled(is) != "":
			return &FileError{e.Policy, e.Pattern, r.ruled(is), true}
		case !by.File && r.Defines(is):
			return &FileError{e.Policy, e.Pattern, *r.file.Load(), false}
		}
	}
	return nil
}

// readableByAll returns the error of Options.Readable for the highest level of the entries that edits set, unless the
// author forces the change, or it is urgent: a block must not wait for the upgrade of a server.
func (r *Registry) readableByAll(by Author, edits []Edit) error {
	if r.readable == nil || by.Force || by.Urgent {
		return nil
	}
	level := 0
	for i := range edits {
		if e := edits[i].Set; e != nil {
			level = max(level, e.Level())
		}
	}
	return r.readable(level)
}

// step lets other goroutines run after every eighth entry of long work. i is the index of the
// entry; each entry takes some microseconds. Work on fewer than eight entries does not yield,
// because a yield takes milliseconds while event loops are always busy.
func step(i int) {
	if i%8 == 7 {
		yield.Processor()
	}
}

// step does what the function step does, for a change that holds mu. It returns errGivesWay if an
// urgent change waits. If the change does not give way any more, step does nothing.
func (r *Registry) step(i int) error {
	switch {
	case !r.patient:
		return nil
	case r.urgent.Load() > 0:
		return errGivesWay
	}
	step(i)
	return nil
}

// update is a change in progress.
type update struct {
	registry *Registry
	store    Store
	by       Author
	now      limit.Instant
	// before has the entry that each of edits replaces; nil if there was none. edits has the edits
	// that apply has made so far.
	before []*policy.Entry
	edits  []Edit
}

// apply applies edits to the builder, up to the first that fails, and returns its error or
// errGivesWay.
func (u *update) apply(edits []Edit) error {
	b := u.registry.builder
	for i, e := range edits {
		if err := u.registry.step(i); err != nil {
			return err
		}
		is := b.Get(e.Kind, e.Policy, e.Pattern)
		if e.Set == nil {
			b.Delete(e.Kind, e.Policy, e.Pattern)
		} else if err := b.Set(e.Set); err != nil {
			return err
		}
		u.before, u.edits = append(u.before, is), append(u.edits, e)
	}
	return nil
}

// checkKeys returns a *[PatternError] if the keys of a policy are addresses after edits and one of its patterns is not
// a network. It may also return errGivesWay. It checks the patterns that edits set, and all patterns of policies whose
// keys are addresses only now.
func (u *update) checkKeys(edits []Edit) error {
	b := u.registry.builder
	for i, e := range edits {
		if err := u.registry.step(i); err != nil {
			return err
		}
		main := b.Get(policy.Main, e.Policy, "")
		if e.Set == nil || main == nil || !main.Key.IP {
			continue
		}
		var bad *policy.Entry
		note := func(e *policy.Entry) bool {
			if e.Kind.HasPattern() && !main.Key.Holds(e.Pattern) && (bad == nil || e.Pattern < bad.Pattern) {
				bad = e
			}
			return true
		}
		if before := u.before[i]; e.Kind != policy.Main {
			note(e.Set)
		} else if before == nil || !before.Key.IP {
			b.Each(e.Policy, note)
		}
		if bad != nil {
			return &PatternError{bad.Kind, bad.Policy, bad.Pattern}
		}
	}
	return nil
}

// undo reverts the edits that apply has made in the builder. The policies keep their counters.
func (u *update) undo() {
	b := u.registry.builder
	for i := len(u.edits) - 1; i >= 0; i-- {
		e := u.edits[i]
		if was := u.before[i]; was == nil {
			b.Delete(e.Kind, e.Policy, e.Pattern)
		} else if err := b.Set(was); err != nil {
			panic(errors.Join(errUndo, err)) // there was room for the entry before the change
		}
	}
	for _, e := range u.edits {
		if p := u.registry.published.Load().table.Policy([]byte(e.Policy)); p != nil {
			b.Recount(e.Policy, p.Counts)
		}
	}
}

var errUndo = errors.New("registry: a change cannot be taken back")

// write writes the records of the edits and of the history, and deletes the records of removed
// entries. A removed entry is first written as an empty value, so that all edits happen at one
// instant. It returns the error of the store, or errGivesWay; then nothing is written.
func (u *update) write(edits []Edit) error {
	var pairs, gone [][]byte
	need := Frees
	for i, e := range edits {
		if err := u.registry.step(i); err != nil {
			return err
		}
		var key, value []byte
		if e.Set != nil {
			key, value = e.Set.AppendKey(nil), e.Set.AppendValue(nil)
			need = min(need, needOf(e.Kind))
		} else {
			is := policy.Entry{Kind: e.Kind, Policy: e.Policy, Pattern: e.Pattern}
			key, value = is.AppendKey(nil), []byte{}
			gone = append(gone, key)
		}
		pairs = append(pairs, key, value)
	}
	changes, err := u.changes()
	if err != nil {
		return err
	}
	h := &u.registry.history
	values := make([][]byte, len(changes))
	for i := range changes {
		values[i] = changes[i].value()
		pairs = append(pairs, changeKey(changes[i].ID), values[i])
		if _, there := h.changes[changes[i].ID-MaxChanges]; there {
			old := changeKey(changes[i].ID - MaxChanges)
			pairs, gone = append(pairs, old, []byte{}), append(gone, old)
		}
	}
	if err := u.store.SetStrings(pairs, need); err != nil {
		return err
	}
	for i := 0; i < 2*len(edits); i += 2 {
		u.registry.unreadable.note(pairs[i], nil)
	}
	for i := range changes {
		h.add(changes[i].ID, values[i])
	}
	if u.store.Removes() {
		return nil
	}
	for i, key := range gone {
		if u.registry.step(i) != nil {
			u.registry.told.addVoid(key) // the key of the record is deleted later
			continue
		}
		if u.store.Delete(key) != nil {
			u.registry.told.addVoid(key)
		}
	}
	return nil
}

// needOf returns the need of a change that sets an entry of the kind k. A change that only deletes
// has the need Frees.
func needOf(k policy.Kind) Need {
	if k == policy.Block {
		return Urgent
	}
	return Spare
}

// changes returns the history of the edits: one change for each policy, but only the last
// MaxChanges of them. The error is errGivesWay.
func (u *update) changes() (all []Change, err error) {
	at := int64(u.store.Civil(u.now)) / 1e6
	index := make(map[string]int)
	for i, e := range u.edits {
		if err := u.registry.step(i); err != nil {
			return nil, err
		}
		n, there := index[e.Policy]
		if !there {
			n = len(all)
			index[e.Policy] = n
			all = append(all, Change{
				At: at, User: u.by.User, Address: u.by.Address,
				What: u.by.What, Policy: e.Policy, Pattern: e.Pattern,
			})
		} else if all[n].Pattern != e.Pattern {
			all[n].Pattern = ""
		}
		c := &all[n]
		c.Before = more(c.Before, Text(u.before[i], u.store.Civil))
		c.After = more(c.After, Text(e.Set, u.store.Civil))
	}
	all = all[max(0, len(all)-MaxChanges):]
	for i := range all {
		all[i].ID = u.registry.history.next + int64(i)
	}
	return all, nil
}

// more appends line to text, the field Before or After of a change, and returns the result. It cuts
// a result of more than maxText bytes and appends "...". If line is "", it returns text.
func more(text, line string) string {
	switch {
	case line == "" || len(text) >= maxText:
		return text
	case text != "":
		text += "\n"
	}
	if text += line; len(text) > maxText {
		return text[:cut(text, maxText)] + "..."
	}
	return text
}

// cut returns the largest length up to most at which text may be cut without splitting a UTF-8
// character. text must be longer than most bytes.
func cut(text string, most int) int {
	for most > 0 && text[most]&0xc0 == 0x80 {
		most--
	}
	return most
}
