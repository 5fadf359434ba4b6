package registry_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/registry"
)

// fleet is a store with the registries of several servers.
type fleet struct {
	shared
	servers []*registry.Registry
	failed  []error
	unfit   []int // what Options.Unfit was called with
	broken  error // of a deletion
}

func newFleet(n int) *fleet {
	f := &fleet{shared: shared{memory: memory{records: map[string]string{}, now: limit.Instant(time.Hour)}}}
	for range n {
		f.servers = append(f.servers, registry.New(registry.Options{
			Shared: true,
			Failed: func(err error) { f.failed = append(f.failed, err) },
			Unfit:  func(n int) { f.unfit = append(f.unfit, n) },
		}))
	}
	return f
}

// as returns the view that the server r has of the store.
func (f *fleet) as(r *registry.Registry) *view { return &view{f, r} }

// view is the store for one server: it tells the others of the changes.
type view struct {
	*fleet
	r *registry.Registry
}

func (v *view) SetStrings(pairs [][]byte, need registry.Need) error {
	if err := v.shared.SetStrings(pairs, need); err != nil {
		return err
	}
	for _, other := range v.servers {
		if other != v.r {
			other.ObserveChange(func(yield func(key, value []byte) bool) {
				for i := 0; i < len(pairs); i += 2 {
					if !yield(pairs[i], pairs[i+1]) {
						return
					}
				}
			})
		}
	}
	return nil
}

func (v *view) Delete(keys ...[]byte) error {
	if v.broken != nil {
		return v.broken
	}
	var pairs [][]byte
	for _, key := range keys {
		pairs = append(pairs, key, nil)
	}
	return v.SetStrings(pairs, registry.Frees)
}

// reads lets r read all records.
func (f *fleet) reads(r *registry.Registry) {
	r.ObserveAll(func(yield func(key, value []byte) bool) {
		for key, value := range f.records {
			if !yield([]byte(key), []byte(value)) {
				return
			}
		}
	})
}

func entryOf(t testing.TB, kind policy.Kind, name, pattern, words string) *policy.Entry {
	t.Helper()
	e := &policy.Entry{Kind: kind, Policy: name, Pattern: pattern, Until: limit.MaxInstant}
	if words != "" {
		e.Limits = limits(t, words)
	}
	return e
}

func (f *fleet) set(t testing.TB, r *registry.Registry, all ...*policy.Entry) error {
	t.Helper()
	return r.Update(f.as(r), registry.Author{What: "TEST"}, func(*policy.Builder, limit.Instant) (edits []registry.Edit, _ error) {
		for _, e := range all {
			edits = append(edits, registry.Set(e))
		}
		return edits, nil
	})
}

func (f *fleet) lay(t testing.TB, r *registry.Registry, text string) (changed int) {
	t.Helper()
	r.SetFile("/policies.yaml")
	changed, err := r.Overlay(parse(t, text), f.now, policy.Bounds{})
	require.NoError(t, err)
	return changed
}

const fileOfAPI = "policies:\n  api:\n    limits: [TB 2 1 1]\n    overrides:\n      a:\n        limits: [TB 3 1 1]\n"

// TestFileLiesOverTheRecords: the file wins on its server, nothing of it is written, and hidden records are in force
// again without it.
func TestFileLiesOverTheRecords(t *testing.T) {
	f := newFleet(2)
	r, other := f.servers[0], f.servers[1]
	require.NoError(t, f.set(t, other, mainEntry(t, "api", "TB 1 1 1"), mainEntry(t, "own", "TB 1 1 1"),
		entryOf(t, policy.Override, "api", "a", "TB 1 2 1"), entryOf(t, policy.Override, "api", "b", "TB 1 3 1")))
	written := maps.Clone(f.records)
	require.Equal(t, 2, f.lay(t, r, fileOfAPI))
	require.Zero(t, f.lay(t, r, fileOfAPI), "nothing has changed")
	require.Equal(t, written, f.records)
	require.Equal(t, "policies:\n  api:\n    limits: [TB 2 1 1]\n    overrides:\n      a:\n        limits: [TB 3 1 1]\n      b:\n        limits: [TB 1 3 1]\n  own:\n    limits: [TB 1 1 1]\n",
		string(r.Document(f.now, f.Civil, nil).Append(nil)))
	require.Equal(t, fileOfAPI, string(r.Document(f.now, f.Civil, r.Defines).Append(nil)))

	var refused *registry.FileError
	require.ErrorAs(t, f.set(t, r, mainEntry(t, "api", "TB 9 1 1")), &refused)
	require.ErrorAs(t, f.set(t, r, entryOf(t, policy.Override, "api", "a", "TB 9 1 1")), &refused)
	require.NoError(t, f.set(t, r, entryOf(t, policy.Block, "api", "a", "")))
	require.Contains(t, entriesOf(other), "block/api/a", "a block is in force on every server")

	r.Table().Policy([]byte("api")).Counts.Allowed.Store(7)
	require.NoError(t, f.set(t, other, mainEntry(t, "api", "TB 5 1 1"), entryOf(t, policy.Override, "api", "a", "TB 5 2 1")))
	require.Equal(t, int64(2), r.Table().Policy([]byte("api")).Main.Limits.Clauses[0].Bucket.Capacity)
	f.reads(r)
	require.Equal(t, int64(2), r.Table().Policy([]byte("api")).Main.Limits.Clauses[0].Bucket.Capacity)
	require.Equal(t, 2, f.lay(t, r, "policies: {}\n"))
	require.Equal(t, entriesOf(other), entriesOf(r))
	require.Equal(t, int64(7), r.Table().Policy([]byte("api")).Counts.Allowed.Load(), "the counters go on")
	require.NoError(t, f.set(t, r, mainEntry(t, "api", "TB 9 1 1")))
	require.Empty(t, f.failed)
}

// TestOrphansStay: entries of a policy that only another server's file has are kept, and are in force when the policy
// appears.
func TestOrphansStay(t *testing.T) {
	f := newFleet(2)
	r, other := f.servers[0], f.servers[1]
	f.lay(t, r, fileOfAPI)
	require.NoError(t, f.set(t, r, entryOf(t, policy.Override, "api", "b", "TB 4 1 1"), entryOf(t, policy.Block, "api", "x", "")))
	require.Nil(t, other.Table().Policy([]byte("api")))
	n, err := other.Apply(f.as(other), registry.Author{}, parse(t, "policies:\n  own:\n    limits: [TB 1 1 1]\n"), policy.Bounds{})
	require.NoError(t, err)
	require.Equal(t, 1, n, "the orphans stay")
	f.reads(other)
	require.NoError(t, other.Fault())
	f.lay(t, other, "policies:\n  api:\n    limits: [TB 2 1 1]\n")
	p := other.Table().Policy([]byte("api"))
	var a policy.Applied
	p.Find([]byte("b"), f.now, &a)
	require.NotNil(t, a.Override)
	p.Find([]byte("x"), f.now, &a)
	require.NotNil(t, a.Block)

	// A document that has the policy has all of its overrides.
	f.lay(t, other, "policies: {}\n")
	n, err = other.Apply(f.as(other), registry.Author{}, parse(t, "policies:\n  api:\n    limits: [TB 8 1 1]\n"), policy.Bounds{})
	require.NoError(t, err)
	require.Equal(t, 3, n, "api is new, own and the override are gone")
	require.NotContains(t, entriesOf(r), "override/api/b")
	require.Contains(t, entriesOf(r), "block/api/x")
}

// TestPatternsThatThePolicyOfAFileCannotUse are left out and counted, and come back.
func TestPatternsThatThePolicyOfAFileCannotUse(t *testing.T) {
	f := newFleet(2)
	r, other := f.servers[0], f.servers[1]
	require.NoError(t, f.set(t, other, mainEntry(t, "api", "TB 1 1 1"), entryOf(t, policy.Override, "api", "vip*", "TB 4 1 1"),
		entryOf(t, policy.Block, "api", "10.0.0.0/8", ""), entryOf(t, policy.Exempt, "api", "x", "")))
	const addresses = "policies:\n  api:\n    key: IP 32 56\n    limits: [TB 2 1 1]\n"
	f.lay(t, r, addresses)
	require.Equal(t, 2, r.Unfit())
	require.Equal(t, []int{2}, f.unfit)
	require.Len(t, entriesOf(r), 2)
	require.Zero(t, r.Table().Sizes().Overrides)
	d := r.Document(f.now, f.Civil, nil).Append(nil)
	parse(t, string(d))
	require.NoError(t, f.set(t, other, entryOf(t, policy.Override, "api", "more", "TB 4 1 1")))
	f.reads(r)
	require.Equal(t, 3, r.Unfit())
	require.Equal(t, []int{2}, f.unfit, "one line in the log")
	require.ErrorAs(t, f.set(t, r, entryOf(t, policy.Override, "api", "other", "TB 4 1 1")), new(*registry.PatternError))
	f.lay(t, r, fileOfAPI)
	require.Zero(t, r.Unfit())
	require.Len(t, entriesOf(r), 6)

	// A policy of the store may have addresses as keys, while a file has other ones.
	main := mainEntry(t, "net", "TB 1 1 1")
	main.Key = policy.KeyForm{IP: true, V4: 32, V6: 56}
	require.NoError(t, f.set(t, other, main))
	f.lay(t, r, strings.ReplaceAll(fileOfAPI, "api", "net"))
	require.NoError(t, f.set(t, r, entryOf(t, policy.Override, "net", "vip", "TB 1 1 1")))
	require.Contains(t, entriesOf(r), "override/net/vip")
	require.NotContains(t, entriesOf(other), "override/net/vip")
	require.Equal(t, 1, other.Unfit())
	without := mainEntry(t, "net", "TB 1 1 1")
	require.NoError(t, f.set(t, other, without))
	require.Contains(t, entriesOf(other), "override/net/vip")
	require.NoError(t, other.Update(f.as(other), registry.Author{}, func(b *policy.Builder, _ limit.Instant) ([]registry.Edit, error) {
		return []registry.Edit{registry.Delete(b.Get(policy.Override, "net", "vip")), registry.Set(main)}, nil
	}))
	require.NoError(t, f.set(t, r, entryOf(t, policy.Override, "net", "vip", "TB 1 1 1")))
	require.NoError(t, other.Update(f.as(other), registry.Author{}, func(b *policy.Builder, _ limit.Instant) ([]registry.Edit, error) {
		return []registry.Edit{registry.Delete(b.Get(policy.Main, "net", ""))}, nil
	}))
	require.Zero(t, other.Unfit(), "it went with its policy")
	require.NotContains(t, entriesOf(r), "override/net/vip")
	require.Empty(t, f.failed)
}

// TestOverrideOfTheFileEnds: the record that it has hidden is in force again, and its record is not deleted.
func TestOverrideOfTheFileEnds(t *testing.T) {
	f := newFleet(1)
	r := f.servers[0]
	require.NoError(t, f.set(t, r, mainEntry(t, "api", "TB 1 1 1"), entryOf(t, policy.Override, "api", "a", "TB 4 1 1")))
	const text = "policies:\n  api:\n    limits: [TB 2 1 1]\n    overrides:\n      a: {limits: [TB 3 1 1], expires: 1970-01-01T02:00:00Z}\n"
	f.lay(t, r, text)
	capacity := func() int64 {
		var a policy.Applied
		r.Table().Policy([]byte("api")).Find([]byte("a"), f.now, &a)
		return a.Override.Limits.Clauses[0].Bucket.Capacity
	}
	require.Equal(t, int64(3), capacity())
	records := maps.Clone(f.records)
	f.now = limit.Instant(2 * time.Hour)
	r.Tidy(f.as(r), true)
	require.Equal(t, int64(4), capacity())
	f.reads(r)
	require.Equal(t, int64(4), capacity())
	require.Equal(t, records, f.records)
	require.Zero(t, f.lay(t, r, text))
}

// TestHiddenRecordsEnd: they are deleted from the store like others.
func TestHiddenRecordsEnd(t *testing.T) {
	f := newFleet(1)
	r := f.servers[0]
	ends := entryOf(t, policy.Override, "api", "a", "TB 4 1 1")
	ends.Until = f.now.Add(time.Minute)
	unfit := entryOf(t, policy.Block, "net", "a", "")
	unfit.Until = ends.Until
	require.NoError(t, f.set(t, r, mainEntry(t, "api", "TB 1 1 1"), mainEntry(t, "net", "TB 1 1 1"), ends, unfit))
	n := len(f.records)
	f.lay(t, r, fileOfAPI+"  net:\n    key: IP 32 56\n    limits: [TB 2 1 1]\n")
	require.Equal(t, 1, r.Unfit())
	f.now = f.now.Add(time.Minute)
	r.Tidy(f.as(r), true)
	require.Len(t, f.records, n-2)
	require.Zero(t, r.Unfit())
	require.Contains(t, entriesOf(r), "override/api/a", "that of the file")
}

// TestHiddenRecordsThatAreSetAgainStay: a deletion that has failed is made later, unless the record was set again.
func TestHiddenRecordsThatAreSetAgainStay(t *testing.T) {
	f := newFleet(2)
	r, other := f.servers[0], f.servers[1]
	ending := func(name, pattern string) *policy.Entry {
		e := entryOf(t, policy.Override, name, pattern, "TB 4 1 1")
		e.Until = f.now.Add(time.Minute)
		return e
	}
	require.NoError(t, f.set(t, other, mainEntry(t, "api", "TB 1 1 1"), mainEntry(t, "net", "TB 1 1 1"), ending("api", "a"), ending("net", "b"), ending("net", "c")))
	f.lay(t, r, fileOfAPI+"  net:\n    key: IP 32 56\n    limits: [TB 2 1 1]\n")
	f.now, f.broken = f.now.Add(time.Minute), errors.New("away")
	r.Tidy(f.as(r), true)
	require.Contains(t, f.records, "override/net/c")
	require.NoError(t, f.set(t, other, entryOf(t, policy.Override, "api", "a", "TB 5 1 1"), entryOf(t, policy.Override, "net", "b", "TB 5 1 1")))
	f.broken = nil
	r.Tidy(f.as(r), true)
	require.Contains(t, f.records, "override/api/a")
	require.Contains(t, f.records, "override/net/b")
	require.NotContains(t, f.records, "override/net/c")
}

// TestFileTakesNoRoom: the bounds are those of the records, so that all servers can read them.
func TestFileTakesNoRoom(t *testing.T) {
	full := func(prefix string) *document.Document {
		d := &document.Document{}
		for i := range policy.DefaultPolicies {
			d.Policies = append(d.Policies, document.Policy{Name: fmt.Sprint(prefix, i), Limits: []string{"TB 1 1 1"}})
		}
		return d
	}
	f := newFleet(2)
	r, other := f.servers[0], f.servers[1]
	r.SetFile("/policies.yaml")
	_, err := r.Overlay(full("a"), f.now, policy.Bounds{})
	require.NoError(t, err)
	_, err = r.Apply(f.as(r), registry.Author{}, full("b"), policy.Bounds{})
	require.NoError(t, err)
	require.Equal(t, 2*policy.DefaultPolicies, r.Table().Sizes().Policies)
	for _, server := range f.servers {
		require.ErrorIs(t, f.set(t, server, mainEntry(t, "more", "TB 1 1 1")), policy.ErrTooManyPolicies)
		require.NoError(t, f.set(t, server, mainEntry(t, "b1", "TB 7 1 1")))
	}
	require.Equal(t, policy.DefaultPolicies, other.Table().Sizes().Policies)
	require.ErrorIs(t, f.set(t, r, entryOf(t, policy.Block, "a1", "k", "")), policy.ErrTooManyPolicies, "it would be one more name")
}

// TestOverlayRandomly: whatever changes in the store and in the files, in any order, the table is that of the records
// with the entries of the file in their place, and without the patterns that its policies cannot use.
func TestOverlayRandomly(outer *testing.T) {
	names := []string{"api", "net"}
	patterns := []string{"a", "vip*", "*", "10.0.0.0/8", "10.1.0.0/16"}
	rapid.Check(outer, func(t *rapid.T) {
		f := newFleet(3)
		files := make([]*document.Document, len(f.servers))
		stored := map[string]*policy.Entry{} // the records
		number := 0
		clause := func() string { number++; return fmt.Sprintf("TB %d 1 1", number) }
		until := func() limit.Instant {
			return rapid.SampledFrom([]limit.Instant{limit.MaxInstant, f.now.Add(time.Minute)}).Draw(t, "until")
		}
		form := func() (k policy.KeyForm) {
			if rapid.Bool().Draw(t, "ip") {
				k = policy.KeyForm{IP: true, V4: 32, V6: 56}
			}
			return k
		}
		key := func(e *policy.Entry) string { return string(e.AppendKey(nil)) }
		change := func(t *rapid.T) { // by a server that is none of these, or of another version
			var pairs [][]byte
			for range rapid.IntRange(1, 4).Draw(t, "edits") {
				e := &policy.Entry{
					Kind: policy.Kind(rapid.IntRange(0, int(policy.Exempt)).Draw(t, "kind")), Policy: rapid.SampledFrom(names).Draw(t, "policy"),
					Until: limit.MaxInstant,
				}
				if e.Kind.HasPattern() {
					e.Pattern, e.Until = rapid.SampledFrom(patterns).Draw(t, "pattern"), until()
				} else if e.Kind == policy.Main {
					e.Key = form()
				}
				if e.Kind == policy.Boost {
					e.Factor = 2000
				}
				if e.Kind <= policy.Override {
					e.Limits, e.File = limits(outer, clause()), rapid.Bool().Draw(t, "file")
				}
				if rapid.Bool().Draw(t, "delete") {
					delete(stored, key(e))
					pairs = append(pairs, []byte(key(e)), nil)
				} else {
					stored[key(e)] = e
					pairs = append(pairs, []byte(key(e)), e.AppendValue(nil))
				}
			}
			require.NoError(t, f.as(nil).SetStrings(pairs, registry.Spare))
		}
		lay := func(t *rapid.T) {
			i := rapid.IntRange(0, len(files)-1).Draw(t, "server")
			d := &document.Document{}
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "policies") {
				p := document.Policy{Name: name, Limits: []string{clause()}}
				p.Key = form()
				for _, pattern := range rapid.SliceOfDistinct(rapid.SampledFrom(patterns), rapid.ID).Draw(t, "overrides") {
					o := document.Override{Pattern: pattern, Limits: []string{clause()}}
					if at := until(); at != limit.MaxInstant {
						o.Expires = time.Unix(0, int64(at))
					}
					if p.Key.Holds(pattern) {
						p.Overrides = append(p.Overrides, o)
					}
				}
				d.Policies = append(d.Policies, p)
			}
			files[i] = d
			f.servers[i].SetFile("/policies.yaml")
			_, err := f.servers[i].Overlay(d, f.now, policy.Bounds{})
			require.NoError(t, err)
		}
		command := func(t *rapid.T) { // by one of the servers; a refusal changes nothing
			r := rapid.SampledFrom(f.servers).Draw(t, "at")
			kind, name, pattern := rapid.SampledFrom([]policy.Kind{policy.Main, policy.Override, policy.Block}).Draw(t, "kind"), rapid.SampledFrom(names).Draw(t, "policy"), ""
			e := &policy.Entry{Kind: kind, Policy: name, Until: limit.MaxInstant}
			if kind == policy.Main {
				e.Key = form()
			} else {
				pattern = rapid.SampledFrom(patterns).Draw(t, "pattern")
				e.Pattern = pattern
			}
			if kind != policy.Block {
				e.Limits = limits(outer, clause())
			}
			remove := rapid.Bool().Draw(t, "delete")
			_ = r.Update(f.as(r), registry.Author{}, func(b *policy.Builder, _ limit.Instant) (edits []registry.Edit, _ error) {
				switch {
				case !remove:
					edits = append(edits, registry.Set(e))
				case kind == policy.Main && b.Get(kind, name, "") != nil:
					b.Each(name, func(e *policy.Entry) bool {
						edits = append(edits, registry.Delete(e))
						return true
					})
				case kind != policy.Main && b.Get(kind, name, pattern) != nil:
					edits = append(edits, registry.Delete(e))
				}
				return edits, nil
			})
			clear(stored)
			for key, value := range f.records {
				if e, err := policy.DecodeEntry([]byte(key), []byte(value), policy.Bounds{LogMaxEntries: 1 << 20, MaxMembers: 1 << 20}); err == nil {
					stored[key] = e
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"change": change,
			"lay":    lay,
			"set":    command,
			"read":   func(t *rapid.T) { f.reads(rapid.SampledFrom(f.servers).Draw(t, "server")) },
			"time": func(t *rapid.T) {
				f.now = f.now.Add(time.Minute)
				for _, r := range f.servers {
					r.Tidy(f.as(r), true)
				}
				maps.DeleteFunc(stored, func(_ string, e *policy.Entry) bool { return !e.InForce(f.now) })
			},
			"": func(t *rapid.T) {
				require.Empty(t, f.failed)
				for i, r := range f.servers {
					want, unfit := overlaid(outer, stored, files[i], f.now)
					require.Equal(t, want, inForce(r, f.now), "server %d", i)
					require.Equal(t, unfit, r.Unfit())
					for key := range stored {
						require.Contains(t, f.records, key, "a record stays in the store")
					}
				}
			},
		})
	})
}

// overlaid is the model of a table: the records with the entries of d in their place. unfit counts the others.
func overlaid(t testing.TB, stored map[string]*policy.Entry, d *document.Document, now limit.Instant) (want map[string]string, unfit int) {
	all := map[string]*policy.Entry{}
	for key, e := range stored {
		is := *e
		is.File = false
		all[key] = &is
	}
	if d != nil {
		for _, p := range d.Policies {
			e := &policy.Entry{Kind: policy.Main, Policy: p.Name, Flags: p.Flags, File: true, Limits: limits(t, p.Limits[0]), Until: limit.MaxInstant}
			all[string(e.AppendKey(nil))] = e
			for _, o := range p.Overrides {
				e := &policy.Entry{Kind: policy.Override, Policy: p.Name, Pattern: o.Pattern, File: true, Limits: limits(t, o.Limits[0]), Until: limit.MaxInstant}
				if !o.Expires.IsZero() {
					e.Until = limit.Instant(o.Expires.UnixNano())
				}
				if e.InForce(now) {
					all[string(e.AppendKey(nil))] = e
				}
			}
		}
	}
	want = map[string]string{}
	for _, e := range all {
		main := all[string((&policy.Entry{Kind: policy.Main, Policy: e.Policy}).AppendKey(nil))]
		if e.Kind.HasPattern() && main != nil && !main.Key.Holds(e.Pattern) {
			unfit++
			continue
		}
		want[string(e.AppendKey(nil))] = describe(e)
	}
	return want, unfit
}

func inForce(r *registry.Registry, now limit.Instant) map[string]string {
	all := map[string]string{}
	r.Table().Each("", func(e *policy.Entry) bool {
		all[string(e.AppendKey(nil))] = describe(e)
		return true
	})
	return all
}

// describe returns all of e but the instant at which it was set.
func describe(e *policy.Entry) string {
	return fmt.Sprint(e.File, registry.Text(e, func(at limit.Instant) limit.Instant { return at }))
}
