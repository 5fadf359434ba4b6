package registry

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
)

// civil converts an instant of the store into the civil instant.
type civil func(limit.Instant) limit.Instant

// Document returns the policies and overrides in force at now as a document. civil converts the
// expiries of overrides. keep selects entries; nil selects all.
func (r *Registry) Document(now limit.Instant, civil civil, keep func(e *policy.Entry) bool) *document.Document {
	d, t, at := document.Document{}, r.Table(), make(map[string]int)
	t.Each("", func(e *policy.Entry) bool {
		if e.Kind == policy.Main && (keep == nil || keep(e)) {
			at[e.Policy] = len(d.Policies)
			d.Policies = append(d.Policies, document.Policy{
				Name: e.Policy, Comment: e.Comment, Millis: e.Limits.Millis, Flags: e.Flags, Limits: e.Limits.Text,
			})
		}
		return true
	})
	t.Each("", func(e *policy.Entry) bool {
		i, there := at[e.Policy]
		if e.Kind != policy.Override || !there || !e.InForce(now) || keep != nil && !keep(e) {
			return true
		}
		step(len(d.Policies[i].Overrides))
		o := document.Override{Pattern: e.Pattern, Comment: e.Comment, Millis: e.Limits.Millis, Limits: e.Limits.Text}
		if e.Until != limit.MaxInstant {
			o.Expires = time.Unix(0, int64(civil(e.Until))).UTC()
		}
		d.Policies[i].Overrides = append(d.Policies[i].Overrides, o)
		return true
	})
	return &d
}

// Preview returns the changes that a command would make if it applied d at now by [Registry.Apply].
// civil converts the expiries of overrides. Entries of the policy file and the policies of rules stay even if d does
// not have them.
func (r *Registry) Preview(now limit.Instant, civil civil, d *document.Document) []document.Change {
	after := document.Document{Policies: slices.Clone(d.Policies)}
	at := make(map[string]int)
	for i := range after.Policies {
		at[after.Policies[i].Name] = i
	}
	for _, p := range r.Document(now, civil, r.Fixed).Policies {
		i, there := at[p.Name]
		if !there {
			after.Policies = append(after.Policies, p)
			continue
		}
		q := &after.Policies[i]
		q.Overrides = slices.Clone(q.Overrides)
		for _, o := range p.Overrides {
			if !slices.ContainsFunc(q.Overrides, func(is document.Override) bool { return is.Pattern == o.Pattern }) {
				q.Overrides = append(q.Overrides, o)
			}
		}
	}
	return document.Diff(r.Document(now, civil, nil), &after)
}

// Apply sets the policies and overrides of d, which has been checked, and removes others. bounds
// has the bounds of the limits. If the author is the policy file, only entries that the file
// defines are removed. If the author is a command, only the other entries are removed, and the
// error is a *[FileError] if d changes an entry that the file defines. A policy is removed with all
// its entries. changed is the number of changed entries. Either all changes are made or none: see
// [Registry.Update].
func (r *Registry) Apply(st Store, by Author, d *document.Document, bounds policy.Bounds) (changed int, err error) {
	err = r.Update(st, by, func(b *policy.Builder, now limit.Instant) ([]Edit, error) {
		want, err := r.entriesOf(d, by.File, now, st.FromCivil, bounds)
		if err != nil {
			return nil, err
		}
		edits, err := r.difference(b, want, by.File)
		changed = len(edits)
		return edits, err
	})
	return changed, err
}

// name identifies an entry by its kind, policy and pattern.
type name struct {
	kind            policy.Kind
	policy, pattern string
}

// difference returns the edits that Apply has to make if want are the entries of its document.
// byFile says that the author is the policy file. If byFile is false, difference sets File of those
// entries of want that the file defines already. The error is errGivesWay. The caller holds mu.
func (r *Registry) difference(b *policy.Builder, want []*policy.Entry, byFile bool) (edits []Edit, err error) {
	wanted := make(map[name]bool, len(want))
	for i, e := range want {
		if err := r.step(i); err != nil {
			return nil, err
		}
		wanted[nameOf(e)] = true
		is := b.Get(e.Kind, e.Policy, e.Pattern)
		if is != nil && !byFile && r.Fixed(is) {
			e.File = true // a document may repeat an entry of the file without a change
		}
		if is == nil || !same(is, e) {
			edits = append(edits, Set(e))
		}
	}
	var gone []Edit
	without := make(map[string]bool) // names of the policies whose other entries are removed with them
	b.Each("", func(e *policy.Entry) bool {
		if e.Kind == policy.Main && !wanted[name{e.Kind, e.Policy, ""}] && r.ruled(e) == "" && r.Defines(e) == byFile {
			without[e.Policy] = true
		}
		return true
	})
	b.Each("", func(e *policy.Entry) bool {
		dropped := e.Kind == policy.Override && !wanted[nameOf(e)] && r.Defines(e) == byFile
		// An entry in a store may be under a policy that only the files of other servers define.
		dropped = dropped && (wanted[name{policy.Main, e.Policy, ""}] || b.Get(policy.Main, e.Policy, "") != nil)
		if without[e.Policy] || dropped {
			gone = append(gone, Delete(e))
		}
		return true
	})
	slices.SortFunc(gone, func(a, b Edit) int { // the history shows the changes in this order
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pattern, b.Pattern))
	})
	return append(gone, edits...), nil // removals come first, because they make room for the other changes
}

// same reports whether a and b, which have the same kind, policy and pattern, are equal except for
// the instant at which they were set.
func same(a, b *policy.Entry) bool {
	return a.Flags == b.Flags && a.File == b.File && a.Comment == b.Comment && a.Until == b.Until && a.Limits.Equal(b.Limits)
}

// entriesOf returns the entries of d, without overrides that have ended at now. file becomes the
// field File of the entries. fromCivil converts the expiries of overrides, and bounds has the
// bounds of the limits. The error is errGivesWay or that of limitsOf. The caller holds mu.
func (r *Registry) entriesOf(
	d *document.Document, file bool, now limit.Instant, fromCivil func(limit.Instant) limit.Instant, bounds policy.Bounds,
) (all []*policy.Entry, err error) {
	for i := range d.Policies {
		if err := r.step(i); err != nil {
			return nil, err
		}
		p := &d.Policies[i]
		limits, err := limitsOf(p.Limits, p.Millis, bounds)
		if err != nil {
			return nil, err
		}
		all = append(all, &policy.Entry{
			Kind: policy.Main, Policy: p.Name, Limits: limits, Flags: p.Flags, Comment: p.Comment,
			File: file, Until: limit.MaxInstant, Since: now,
		})
		for j := range p.Overrides {
			if err := r.step(j); err != nil {
				return nil, err
			}
			o := &p.Overrides[j]
			until := limit.MaxInstant
			if !o.Expires.IsZero() {
				until = fromCivil(limit.Instant(o.Expires.UnixNano()))
			}
			if until <= now {
				continue
			}
			limits, err := limitsOf(o.Limits, o.Millis, bounds)
			if err != nil {
				return nil, err
			}
			all = append(all, &policy.Entry{
				Kind: policy.Override, Policy: p.Name, Pattern: o.Pattern, Limits: limits, Comment: o.Comment,
				File: file, Until: until, Since: now,
			})
		}
	}
	return all, nil
}

// limitsOf parses clauses, the limits of an entry of a document. millis says that their durations
// are in milliseconds. bounds has the bounds of the limits.
func limitsOf(clauses []string, millis bool, bounds policy.Bounds) (*policy.Limits, error) {
	var words [][]byte
	for _, text := range clauses {
		words = append(words, bytes.Fields([]byte(text))...)
	}
	limits, err := policy.ParseLimits(words, millis, bounds)
	if err != "" {
		return nil, err
	}
	return limits, nil
}
