package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/remote/records"
)

// side is one of the two places between which policies are copied.
type side struct {
	*registry.Registry
	store registry.Store
}

// policyCopy copies the policies of one side to the other: documents, overrides, boosts, blocks, exemptions and candidates.
type policyCopy struct {
	from, to side
	// replace says that an entry of the other side that differs is replaced.
	replace bool
	// most is the maximum number of entries of one change; 0 stands for changeEntries.
	most int

	copied map[policy.Kind]int // number of copied entries by kind
	there  int                 // number of entries that the other side had already
}

// copyAuthor is the author of the changes in the list of changes.
var copyAuthor = registry.Author{What: "cellserver copy"}

// errDiffers is the error of a copy that would replace entries without permission. Nothing is
// changed.
var errDiffers = errors.New("the other side has other policies: use --replace to overwrite them, or --without-policies")

// policiesOfDir returns the policies in ks.
func policiesOfDir(ks *keyspace.Keyspace) (side, error) {
	s := side{registry.New(registry.Options{}), &dirRecords{ks}}
	v := ks.NewHandle()
	defer v.Close()
	for cursor := uint64(0); ; {
		cursor = v.ScanEntries(registry.Database, cursor, copyStep, s.Observe)
		if cursor == 0 {
			return s, s.fault("the directory")
		}
	}
}

// policiesOfStore returns the policies in the store of e. now is the clock of the store.
func policiesOfStore(e records.Engine, now func() limit.Instant) (side, error) {
	r := registry.New(registry.Options{})
	store := records.New(records.Options{Engine: e, Observer: r, Now: now})
	if err := store.Load(context.Background()); err != nil {
		return side{}, fmt.Errorf("the policies of the store: %w", err)
	}
	s := side{r, store}
	return s, s.fault("the store")
}

// fault returns an error if a record cannot be read. where names the side.
func (s side) fault(where string) error {
	if err := s.Fault(); err != nil {
		return fmt.Errorf("a policy of %s cannot be read by this version: %w; --without-policies copies only the states", where, err)
	}
	return nil
}

// entries returns copies of the entries that are in force at now, in the order in which they are copied. The policy file
// defines none of them on the other side.
func (s side) entries(now limit.Instant) (all []*policy.Entry) {
	s.Table().Each("", func(e *policy.Entry) bool {
		if e.InForce(now) {
			mine := *e
			mine.File = false
			all = append(all, &mine)
		}
		return true
	})
	slices.SortFunc(all, func(a, b *policy.Entry) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Pattern, b.Pattern))
	})
	return all
}

// sameEntry reports whether a and b, which have the same kind, policy and pattern, have the same effect.
func sameEntry(a, b *policy.Entry) bool {
	return a.Flags == b.Flags && a.Comment == b.Comment && a.Factor == b.Factor && a.Until == b.Until && a.Limits.Equal(b.Limits)
}

// errCheckOnly ends a change that is only planned.
var errCheckOnly = errors.New("nothing is changed")

// changeEntries is the maximum number of entries of one change, which a store writes at once.
const changeEntries = 10_000

// check plans the copy without changing anything. It returns the same errors as run.
func (p *policyCopy) check() error {
	if err := p.copy(true); !errors.Is(err, errCheckOnly) {
		return err
	}
	return nil
}

// run copies the entries, in several changes if they are many: first the policies, then what applies to some of their
// keys. The error is errDiffers, or an error of the side to which it copies; then earlier changes stay.
func (p *policyCopy) run() error { return p.copy(false) }

func (p *policyCopy) copy(checks bool) error {
	p.copied, p.there = map[policy.Kind]int{}, 0
	now, err := p.from.store.Refresh()
	if err != nil {
		return err
	}
	all := p.from.entries(now)
	if checks {
		return p.change(all, true)
	}
	for part := range slices.Chunk(all, cmp.Or(p.most, changeEntries)) {
		if err := p.change(part, false); err != nil {
			return err
		}
	}
	return nil
}

// change makes the part of the entries that the other side does not have as one change. If checks is set, it only counts
// them and returns errCheckOnly.
func (p *policyCopy) change(part []*policy.Entry, checks bool) error {
	copied, there := map[policy.Kind]int{}, 0
	err := p.to.Update(p.to.store, copyAuthor, func(b *policy.Builder, _ limit.Instant) (edits []registry.Edit, err error) {
		clear(copied)
		there = 0
		for _, e := range part {
			switch is := b.Get(e.Kind, e.Policy, e.Pattern); {
			case is == nil:
			case sameEntry(is, e):
				there++
				continue
			case !p.replace:
				return nil, fmt.Errorf("%w: %s is different there", errDiffers, describeEntry(e))
			}
			copied[e.Kind]++
			edits = append(edits, registry.Set(e))
		}
		if checks {
			return nil, errCheckOnly
		}
		return edits, nil
	})
	if err == nil || errors.Is(err, errCheckOnly) {
		p.there += there
		for kind, n := range copied {
			p.copied[kind] += n
		}
	}
	return err
}

// describeEntry returns a description of e for messages.
func describeEntry(e *policy.Entry) string {
	if !e.Kind.HasPattern() {
		return fmt.Sprintf("%s of policy %q", entryNames[e.Kind], e.Policy)
	}
	return fmt.Sprintf("%s %q of policy %q", entryNames[e.Kind], e.Pattern, e.Policy)
}

// entryNames has the names of the kinds of entries in messages.
var entryNames = [...]string{
	policy.Main: "the limits", policy.Candidate: "the candidate", policy.Override: "override", policy.Boost: "boost",
	policy.Block: "block", policy.Exempt: "exemption",
}

// report prints what was copied. verb is the word that it uses for copying.
func (p *policyCopy) report(w io.Writer, verb string) {
	n := p.copied
	fmt.Fprintf(w, "%d policies, %d candidates, %d overrides, %d boosts, %d blocks and %d exemptions %s\n", n[policy.Main],
		n[policy.Candidate], n[policy.Override], n[policy.Boost], n[policy.Block], n[policy.Exempt], verb)
	if p.there > 0 {
		fmt.Fprintf(w, "%d entries of policies skipped: are there already\n", p.there)
	}
}

// dirRecords keeps the records of policies in the keyspace of a directory. It implements [registry.Store].
type dirRecords struct{ ks *keyspace.Keyspace }

// Refresh returns the present instant.
func (d *dirRecords) Refresh() (limit.Instant, error) { return d.ks.Clock().Now(), nil }

// Civil implements [registry.Store]: it converts i, an instant of the keyspace, into the civil
// instant.
func (d *dirRecords) Civil(i limit.Instant) limit.Instant { return d.ks.Clock().Civil(i) }

// FromCivil implements [registry.Store]. It is the inverse of Civil.
func (d *dirRecords) FromCivil(i limit.Instant) limit.Instant { return d.ks.Clock().Derived(i) }

// SetStrings stores the pairs.
func (d *dirRecords) SetStrings(pairs [][]byte, _ registry.Need) error {
	for i := 0; i < len(pairs); i += 2 {
		e := entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: slices.Clone(pairs[i+1])}
		if err := d.ks.Restore(registry.Database, pairs[i], e); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes keys.
func (d *dirRecords) Delete(keys ...[]byte) error {
	v := d.ks.NewHandle()
	defer v.Close()
	for _, key := range keys {
		v.Delete(registry.Database, key)
	}
	return nil
}

// Removes returns false: an empty value is kept until Delete.
func (*dirRecords) Removes() bool { return false }
