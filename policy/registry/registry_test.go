package registry_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/registry"
)

// memory is a store that keeps records in a map, and fails on demand.
type memory struct {
	records map[string]string
	now     limit.Instant
	// ahead is how much the civil clock is ahead of the store's.
	ahead time.Duration
	fails error
	// need is the need of the latest change.
	need registry.Need
	// asked and deletes, if not nil, are called by Civil and Delete.
	asked, deletes func()
}

func newMemory() *memory {
	return &memory{records: map[string]string{}, now: limit.Instant(time.Hour)}
}

func (m *memory) Refresh() (limit.Instant, error)          { return m.now, nil }
func (m *memory) FromCivil(at limit.Instant) limit.Instant { return at.Add(-m.ahead) }

func (m *memory) Civil(at limit.Instant) limit.Instant {
	if m.asked != nil {
		m.asked()
	}
	return at.Add(m.ahead)
}

func (m *memory) Delete(keys ...[]byte) error {
	for _, key := range keys {
		if m.deletes != nil {
			m.deletes()
		}
		delete(m.records, string(key))
	}
	return nil
}

func (m *memory) Removes() bool { return false }

func (m *memory) SetStrings(pairs [][]byte, need registry.Need) error {
	m.need = need
	if m.fails != nil {
		return m.fails
	}
	for i := 0; i < len(pairs); i += 2 {
		m.records[string(pairs[i])] = string(pairs[i+1])
	}
	return nil
}

// reload returns a registry that has received all records of m, as after a restart.
func (m *memory) reload(t testing.TB) *registry.Registry {
	t.Helper()
	r := registry.New(registry.Options{})
	for key, value := range m.records {
		r.Observe([]byte(key), entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte(value)})
	}
	require.NoError(t, r.Fault())
	return r
}

// entries returns the records of entries, without those of changes.
func (m *memory) entries() map[string]string {
	all := maps.Clone(m.records)
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, "change/") })
	return all
}

func limits(t testing.TB, words string) *policy.Limits {
	t.Helper()
	var all [][]byte
	for _, w := range strings.Fields(words) {
		all = append(all, []byte(w))
	}
	l, err := policy.ParseLimits(all, false, policy.Bounds{LogMaxEntries: 1000, MaxMembers: 1000})
	require.Empty(t, err)
	return l
}

func mainOf(t testing.TB, name, words string) *policy.Entry {
	t.Helper()
	return &policy.Entry{Kind: policy.Main, Policy: name, Limits: limits(t, words), Until: limit.MaxInstant}
}

// set sets entries with a fixed author.
func set(t testing.TB, r *registry.Registry, m *memory, all ...*policy.Entry) error {
	t.Helper()
	edits := make([]registry.Edit, len(all))
	for i, e := range all {
		edits[i] = registry.Set(e)
	}
	return r.Update(m, registry.Author{User: "ann", Address: "10.0.0.1:5", What: "TEST"},
		func(*policy.Builder, limit.Instant) ([]registry.Edit, error) { return edits, nil })
}

func TestWhatIsSetIsThereAfterARestart(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	until := m.now.Add(time.Minute)
	require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 200 100 1 SW 10 60 FIXED")))
	require.NoError(t, set(t, r, m,
		&policy.Entry{Kind: policy.Override, Policy: "api", Pattern: "acme*", Limits: limits(t, "TB 1 1 1"), Until: limit.MaxInstant},
		&policy.Entry{Kind: policy.Boost, Policy: "api", Pattern: "\x00\xff", Factor: 2500, Until: until},
		&policy.Entry{Kind: policy.Block, Policy: "api", Pattern: "evil", Comment: "Größe", Until: until},
		&policy.Entry{Kind: policy.Block, Policy: "api", Pattern: "gone", Until: limit.MaxInstant},
		&policy.Entry{Kind: policy.Exempt, Policy: "api", Pattern: "*", Until: until},
		&policy.Entry{Kind: policy.Candidate, Policy: "api", Limits: limits(t, "CC 5 60"), Until: limit.MaxInstant},
	))
	require.Len(t, entriesOf(r), 7)
	require.Equal(t, entriesOf(r), m.entries())

	again := m.reload(t)
	require.Equal(t, entriesOf(r), entriesOf(again))
	require.Equal(t, r.Changes(registry.Which{Count: 100}), again.Changes(registry.Which{Count: 100}))
	require.Positive(t, r.Bytes())
}

func TestNothingHappensIfTheStoreFails(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 200 100 1"), mainOf(t, "other", "TB 2 1 1")))
	before, history := entriesOf(r), r.Changes(registry.Which{Count: 10})
	m.fails = limit.ErrFull
	err := r.Update(m, registry.Author{}, func(b *policy.Builder, _ limit.Instant) ([]registry.Edit, error) {
		return []registry.Edit{
			registry.Set(mainOf(t, "api", "TB 1 1 1")),
			registry.Delete(b.Get(policy.Main, "other", "")),
			registry.Set(mainOf(t, "new", "TB 1 1 1")),
		}, nil
	})
	require.ErrorIs(t, err, limit.ErrFull)
	m.fails = nil
	require.NoError(t, set(t, r, m)) // without an entry, to publish the current ones
	require.Equal(t, before, entriesOf(r))
	require.Equal(t, history, r.Changes(registry.Which{Count: 10}))

	// Likewise if one of the entries is invalid after a valid one.
	require.ErrorIs(t, set(t, r, m, mainOf(t, "new", "TB 1 1 1"), mainOf(t, "a:b", "TB 1 1 1")), policy.ErrName)
	require.ErrorIs(t, r.Update(m, registry.Author{}, func(*policy.Builder, limit.Instant) ([]registry.Edit, error) {
		return []registry.Edit{registry.Set(mainOf(t, "new", "TB 1 1 1"))}, errSome
	}), errSome)
	require.Equal(t, before, entriesOf(r))
	require.Equal(t, before, m.entries())
}

var errSome = errors.New("some error")

func TestEntriesThatHaveEndedGo(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	block := &policy.Entry{Kind: policy.Block, Policy: "api", Pattern: "evil", Until: m.now.Add(time.Second)}
	require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 1 1 1"), block))
	m.now = block.Until - 1
	r.Tidy(m, true)
	require.Len(t, m.entries(), 2)
	m.now = block.Until
	r.Tidy(m, false) // a replica leaves them to its primary
	require.Equal(t, entriesOf(r), m.entries())
	require.Len(t, m.entries(), 2)

	again := m.reload(t)
	require.Len(t, entriesOf(again), 2)
	r.Tidy(m, true) // as a promoted replica does
	require.Len(t, m.entries(), 1)
	again.Tidy(m, true)
	require.Len(t, entriesOf(again), 1)
	require.Equal(t, entriesOf(again), m.entries())

	// A change removes ended entries, and may set them again.
	block.Until = m.now.Add(time.Second)
	require.NoError(t, set(t, again, m, block))
	m.now = block.Until
	block.Until = m.now.Add(time.Hour)
	require.NoError(t, set(t, again, m, block))
	require.Equal(t, entriesOf(again), m.entries())
	require.Len(t, m.entries(), 2)
}

// TestDeletionThatWasInterrupted: a crash during a deletion leaves an empty record.
func TestDeletionThatWasInterrupted(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 1 1 1"), mainOf(t, "b", "TB 1 1 1")))
	m.records["main/api"] = ""
	m.records["main/b"] = ""
	m.records["change/00000000000000000001"] = ""
	r = m.reload(t)
	require.Empty(t, entriesOf(r))
	require.NoError(t, set(t, r, m, mainOf(t, "b", "TB 2 1 1")))
	r.Tidy(m, true)
	require.Equal(t, entriesOf(r), m.entries(), "the one that is set again stays, the other one is gone")
	require.Len(t, m.entries(), 1)
	require.NotContains(t, m.records, "change/00000000000000000001")
}

func TestRecordsOfAPrimary(t *testing.T) {
	primary, m := registry.New(registry.Options{}), newMemory()
	replica := registry.New(registry.Options{})
	tell := func(key, value string, k entry.Kind) {
		replica.Observe([]byte(key), entry.Entry{Kind: k, Value: []byte(value)})
	}
	for i := range 1000 { // more than are collected
		require.NoError(t, set(t, primary, m, mainOf(t, fmt.Sprintf("p%d", i%300), fmt.Sprintf("TB %d 1 1", i+1))))
		for key, value := range m.records {
			if strings.HasSuffix(key, fmt.Sprintf("/p%d", i%300)) || strings.HasSuffix(key, fmt.Sprintf("%020d", i+1)) {
				tell(key, value, entry.String)
			}
		}
	}
	require.Equal(t, entriesOf(primary), entriesOf(replica))
	require.Equal(t, primary.Changes(registry.Which{Count: 2000}), replica.Changes(registry.Which{Count: 2000}))
	tell("main/p7", "", entry.None)
	require.Nil(t, replica.Table().Policy([]byte("p7")))
	replica.Observe(nil, entry.Entry{}) // a new full synchronization
	require.Empty(t, entriesOf(replica))
	require.Empty(t, replica.Changes(registry.Which{Count: 10}))
}

func TestRecordThatIsNoneIsAFault(t *testing.T) {
	for _, c := range [][2]string{
		{"main/api", "{}"},
		{"main/api", `{"limits":["TB 1 1 x"]}`},
		{"odd/api", `{"limits":["TB 1 1 1"]}`},
		{"", ""},
		{"main/api", `{"limits":["TB 1 1 1"],"other":1,"since":1}`},
	} {
		var failed error
		r := registry.New(registry.Options{Failed: func(err error) { failed = err }})
		r.Observe([]byte(c[0]), entry.Entry{Kind: entry.String, Value: []byte(c[1])})
		require.Error(t, r.Fault(), "%q", c)
		require.Equal(t, failed, r.Fault())
	}
}

// TestRecordWithAnotherZone: a program with a later release of tzdata may have written a record. It stays as it was
// written, and its zone is told once.
func TestRecordWithAnotherZone(t *testing.T) {
	const value = `{"limits":["SW 5 DAY ZONE Moon/Crater","SW 9 MONTH ZONE Europe/Berlin"],"since":1}`
	var told []string
	r := registry.New(registry.Options{Missing: func(zone, policy string) { told = append(told, zone+" "+policy) }})
	for _, key := range []string{"main/a", "main/b", "override/a/x"} {
		r.Observe([]byte(key), entry.Entry{Kind: entry.String, Value: []byte(value)})
	}
	require.NoError(t, r.Fault())
	require.Equal(t, map[string]string{"main/a": value, "main/b": value, "override/a/x": value}, entriesOf(r))
	require.Equal(t, []string{"Moon/Crater a"}, told)
	_, err := policy.ParseLimits(bytes.Fields([]byte("SW 5 DAY ZONE Moon/Crater")), false, policy.Bounds{})
	require.Contains(t, string(err), "ERR clause 1: value is no time zone: ZONE is 'Moon/Crater'")
}

// TestHistoryIsNoFault: changes only describe the past, so one that this build cannot read is
// omitted, and an unknown field is ignored.
func TestHistoryIsNoFault(t *testing.T) {
	const first, second = "change/00000000000000000001", "change/00000000000000000002"
	for _, c := range []struct {
		key, value string
		read       int // changes that are shown
		unreadable int // changes that are kept and not shown
	}{
		{key: "change/1", value: "{}"},
		{key: "change/", value: "{}"},
		{key: "change/-0000000000000000001", value: "{}"},
		{key: "change/00000000000000000000", value: "{}"},
		{key: first, value: "{", unreadable: 1},
		{key: first, value: "{}{}", unreadable: 1},
		{key: first, value: `{"at":"noon"}`, unreadable: 1},
		{key: first, value: `{"at":1,"user":"ann","ticket":{"id":[1,2]}}`, read: 1},
	} {
		r, m := registry.New(registry.Options{Failed: func(err error) { t.Error(err) }}), newMemory()
		m.records[c.key] = c.value
		r.Observe([]byte(c.key), entry.Entry{Kind: entry.String, Value: []byte(c.value)})
		require.NoError(t, r.Fault(), "%q", c)
		n, why := r.Unreadable()
		require.Equal(t, c.unreadable, n, "%q", c)
		if n > 0 {
			require.ErrorContains(t, why, `record "`+first+`"`)
		}
		require.Len(t, r.Changes(registry.Which{Count: 10}), c.read, "%q", c)
		require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 1 1 1")))
		require.Len(t, r.Changes(registry.Which{Count: 10}), c.read+1, "%q", c)
		require.Equal(t, c.value, m.records[c.key], "it stays as it was written")
		if strings.Contains(c.key, first) {
			require.Contains(t, m.records, second)
		}
	}
}

func TestChangesSayWhoAndWhat(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	m.ahead = 3 * time.Hour
	require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 1 1 1"), mainOf(t, "b", "TB 1 1 1")))
	m.now = m.now.Add(time.Second)
	require.NoError(t, set(t, r, m, &policy.Entry{
		Kind: policy.Boost, Policy: "api", Pattern: "acme", Factor: 1500, Until: m.now.Add(time.Minute),
	}))
	all := r.Changes(registry.Which{Count: 10, Policy: "api"})
	require.Equal(t, []registry.Change{
		{
			ID: 3, At: 4*3600_000 + 1000, User: "ann", Address: "10.0.0.1:5", What: "TEST", Policy: "api", Pattern: "acme",
			After: `BOOST "acme" 1.5 until 1970-01-01T04:01:01Z`,
		},
		{ID: 1, At: 4 * 3600_000, User: "ann", Address: "10.0.0.1:5", What: "TEST", Policy: "api", After: "MAIN LIMITS TB 1 1 1"},
	}, all)
	require.Len(t, r.Changes(registry.Which{Count: 10}), 3)
	require.Equal(t, all[:1], r.Changes(registry.Which{Count: 10, Policy: "api", Pattern: "acme"}))
	require.Empty(t, r.Changes(registry.Which{Count: 10, Policy: "b", Pattern: "acme"}))
	require.Len(t, r.Changes(registry.Which{Count: 1}), 1)

	for _, pattern := range []string{"\xff\x00*", "\ufffd", `"\`, "<&>"} {
		require.NoError(t, set(t, r, m, &policy.Entry{Kind: policy.Block, Policy: "api", Pattern: pattern, Until: m.now.Add(time.Minute)}))
		require.Equal(t, pattern, r.Changes(registry.Which{Count: 1})[0].Pattern)
		require.Len(t, r.Changes(registry.Which{Count: 9, Pattern: pattern}), 1)
		require.Equal(t, pattern, m.reload(t).Changes(registry.Which{Count: 1})[0].Pattern)
	}
	for i := range registry.MaxChanges {
		require.NoError(t, set(t, r, m, mainOf(t, "api", fmt.Sprintf("TB %d 1 1", i+1))))
	}
	require.Len(t, r.Changes(registry.Which{Count: 2 * registry.MaxChanges}), registry.MaxChanges)
	require.Len(t, m.records, registry.MaxChanges+len(m.entries()))
	require.Equal(t, r.Changes(registry.Which{Count: registry.MaxChanges}), m.reload(t).Changes(registry.Which{Count: registry.MaxChanges}))
}

func TestTextsOfChangesAreBounded(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	all := []*policy.Entry{mainOf(t, "api", "TB 1 1 1")}
	for i := range 100 {
		all = append(all, &policy.Entry{
			Kind: policy.Override, Policy: "api", Pattern: strings.Repeat("ä", 400) + fmt.Sprint(i), Limits: limits(t, "TB 1 1 1"), Until: limit.MaxInstant,
		})
	}
	require.NoError(t, set(t, r, m, all...))
	change := r.Changes(registry.Which{Count: 1})[0]
	require.Less(t, len(change.After), 4200)
	require.Empty(t, change.Pattern)
	require.Equal(t, r.Changes(registry.Which{Count: 1}), m.reload(t).Changes(registry.Which{Count: 1}))
}

// parse parses a valid document.
func parse(t testing.TB, text string) *document.Document {
	t.Helper()
	d, faults := document.Parse("test", []byte(text), policy.Bounds{})
	require.Empty(t, faults)
	return d
}

// TestMemoryOfChangesIsCounted: a policy that is set repeatedly takes no more memory, but its
// history does.
func TestMemoryOfChangesIsCounted(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	one, other := mainOf(t, "api", "TB 1 1 1"), mainOf(t, "api", "TB 2 1 1")
	one.Comment, other.Comment = strings.Repeat("x", policy.MaxComment), strings.Repeat("y", policy.MaxComment)
	require.NoError(t, set(t, r, m, one))
	before := r.Bytes()
	for range 50 {
		require.NoError(t, set(t, r, m, other))
		require.NoError(t, set(t, r, m, one))
	}
	require.Greater(t, r.Bytes(), before+100*2*policy.MaxComment)
	require.Equal(t, r.Bytes(), m.reload(t).Bytes())
	for range registry.MaxChanges {
		require.NoError(t, set(t, r, m, one))
	}
	full := r.Bytes()
	require.NoError(t, set(t, r, m, one))
	require.Equal(t, full, r.Bytes(), "the oldest change goes")
}

func TestDocuments(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	m.ahead = time.Hour
	const text = `policies:
  api:
    comment: all
    limits: [TB 200 100 1]
    overrides:
      acme:
        limits: [TB 2000 1000 1]
      gone:
        limits: [TB 1 1 1]
        expires: 1970-01-01T02:00:00Z
      soon:
        limits: [TB 1 1 1]
        expires: 1970-01-01T02:00:01Z
  b:
    ms: true
    shadow: true
    limits: [SW 5 1000, CC 5 10]
`
	by := registry.Author{What: "RL.POLICY APPLY"}
	n, err := r.Apply(m, by, parse(t, text), policy.Bounds{})
	require.NoError(t, err)
	require.Equal(t, 4, n, "what has ended is left out")
	d := r.Document(m.now, m.Civil, nil)
	require.Contains(t, string(d.Append(nil)), "expires: 1970-01-01T02:00:01Z")
	n, err = r.Apply(m, by, d, policy.Bounds{})
	require.NoError(t, err)
	require.Zero(t, n, "it is so already")
	require.Len(t, r.Changes(registry.Which{Count: 10}), 2, "one for each policy")

	n, err = r.Apply(m, by, parse(t, "policies:\n  b:\n    limits: [SW 5 1]\n"), policy.Bounds{})
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Len(t, entriesOf(r), 1)
	require.Equal(t, entriesOf(r), m.entries())
	_, err = r.Apply(m, by, parse(t, "policies:\n  b:\n    limits: [SW 500 1 LOG]\n"), policy.Bounds{LogMaxEntries: 10})
	require.ErrorContains(t, err, "sw-log-max-entries")
}

// TestDocumentThatReplacesAllPolicies: all policies of a server with the maximum number can be
// replaced. This makes more changes than the history keeps.
func TestDocumentThatReplacesAllPolicies(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	full := func(prefix string) *document.Document {
		d := &document.Document{}
		for i := range document.MaxPolicies {
			d.Policies = append(d.Policies, document.Policy{Name: fmt.Sprint(prefix, i), Limits: []string{"TB 1 1 1"}})
		}
		return d
	}
	for _, prefix := range []string{"b", "c", "a"} {
		_, err := r.Apply(m, registry.Author{}, full(prefix), policy.Bounds{})
		require.NoError(t, err, prefix)
		require.Len(t, entriesOf(r), document.MaxPolicies)
		require.True(t, maps.Equal(entriesOf(r), m.entries()))
		require.Len(t, m.records, document.MaxPolicies+registry.MaxChanges)
		require.Equal(t, prefix+"9999", r.Changes(registry.Which{Count: 1})[0].Policy)
	}
	more := full("d")
	more.Policies = append(more.Policies, document.Policy{Name: "more", Limits: []string{"TB 1 1 1"}})
	_, err := r.Apply(m, registry.Author{}, more, policy.Bounds{})
	require.ErrorIs(t, err, policy.ErrTooManyPolicies)
	changed, err := r.Apply(m, registry.Author{}, full("a"), policy.Bounds{})
	require.NoError(t, err)
	require.Zero(t, changed, "all is as it was")
}

func TestFileDefinesWhatCommandsCannotChange(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	require.NoError(t, set(t, r, m, mainOf(t, "own", "TB 1 1 1"), mainOf(t, "api", "TB 1 1 1")))
	r.SetFile("/etc/policies.yaml")
	file := registry.Author{What: "policy-file", File: true}
	const text = "policies:\n  api:\n    limits: [TB 2 1 1]\n    overrides:\n      a:\n        limits: [TB 3 1 1]\n"
	n, err := r.Apply(m, file, parse(t, text), policy.Bounds{})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Len(t, entriesOf(r), 3, "the policy that a command has set stays")

	override := func(pattern string) *policy.Entry {
		return &policy.Entry{Kind: policy.Override, Policy: "api", Pattern: pattern, Limits: limits(t, "TB 9 1 1"), Until: limit.MaxInstant}
	}
	for _, e := range []*policy.Entry{mainOf(t, "api", "TB 9 1 1"), override("a")} {
		var refused *registry.FileError
		require.ErrorAs(t, set(t, r, m, e), &refused)
		require.ErrorContains(t, refused, "defined by the policy file /etc/policies.yaml")
	}
	forever := m.now.Add(time.Hour)
	require.NoError(t, set(t, r, m, override("b"), &policy.Entry{Kind: policy.Block, Policy: "api", Pattern: "a", Until: forever},
		&policy.Entry{Kind: policy.Candidate, Policy: "api", Limits: limits(t, "TB 8 1 1"), Until: limit.MaxInstant}))

	// A document of all present policies can be applied. One without a policy of the file leaves
	// that policy as it is.
	all := r.Document(m.now, m.Civil, nil)
	n, err = r.Apply(m, registry.Author{}, all, policy.Bounds{})
	require.NoError(t, err)
	require.Zero(t, n)
	other := parse(t, "policies:\n  other:\n    limits: [TB 1 1 1]\n")
	require.Equal(t, `- api b
    - {limits: [TB 9 1 1]}
+ other
    + {limits: [TB 1 1 1]}
- own
    - {limits: [TB 1 1 1]}
`, string(document.AppendChanges(nil, r.Preview(m.now, m.Civil, other))))
	require.NotContains(t, string(r.Document(m.now, m.Civil, r.Defines).Append(nil)), "own")
	n, err = r.Apply(m, registry.Author{}, other, policy.Bounds{})
	require.NoError(t, err)
	require.Equal(t, 3, n, "other is new, own and the override b are gone")
	require.ErrorAs(t, func() error {
		_, err := r.Apply(m, registry.Author{}, parse(t, "policies:\n  api:\n    limits: [TB 7 1 1]\n"), policy.Bounds{})
		return err
	}(), new(*registry.FileError))

	// The file removes the entries that it no longer contains, and nothing else.
	n, err = r.Apply(m, file, parse(t, "policies: {}\n"), policy.Bounds{})
	require.NoError(t, err)
	require.Equal(t, 4, n, "and what belongs to the policy")
	require.Equal(t, []string{"main/other"}, slices.Sorted(maps.Keys(entriesOf(r))))

	// Without the option these are policies like all others.
	_, err = r.Apply(m, file, parse(t, text), policy.Bounds{})
	require.NoError(t, err)
	r = m.reload(t)
	require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 9 1 1")))
}

// BenchmarkTell loads overrides that were set one after the other, each with its change.
func BenchmarkTell(b *testing.B) {
	r := registry.New(registry.Options{})
	value := []byte(`{"limits":["TB 200 100 1"],"since":1700000000000000000}`)
	change := []byte(`{"at":1,"user":"default","address":"127.0.0.1:1","what":"RL.OVERRIDE SET","policy":"api"}`)
	n := 0
	for b.Loop() {
		n++
		r.Observe(fmt.Appendf(nil, "override/api/customer-%d", n%300_000), entry.Entry{Kind: entry.String, Value: value})
		r.Observe(fmt.Appendf(nil, "change/%020d", n), entry.Entry{Kind: entry.String, Value: change})
	}
}

// TestCountsOutlastADeletionThatFails: a policy keeps its counters if its deletion fails.
func TestCountsOutlastADeletionThatFails(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 1 1 1")))
	counts := r.Table().Policy([]byte("api")).Counts
	counts.Blocked.Add(1)
	m.fails = limit.ErrNotKept
	require.ErrorIs(t, r.Update(m, registry.Author{}, func(b *policy.Builder, _ limit.Instant) ([]registry.Edit, error) {
		return []registry.Edit{registry.Delete(b.Get(policy.Main, "api", ""))}, nil
	}), limit.ErrNotKept)
	m.fails = nil
	require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 2 1 1")))
	require.Same(t, counts, r.Table().Policy([]byte("api")).Counts)
}

// TestKeysOfAddresses: a policy gets KEY IP only if its patterns are networks, and then none is set that is not. Of
// several that are not, the error names the first. Nothing is refused when records are loaded.
func TestKeysOfAddresses(t *testing.T) {
	m, r := newMemory(), registry.New(registry.Options{})
	ip := policy.KeyForm{IP: true, V4: 24, V6: 56}
	limits, refused := policy.ParseLimits(bytes.Fields([]byte("TB 5 1 1")), false, policy.Bounds{})
	require.Empty(t, refused)
	main := func(key policy.KeyForm) registry.Edit {
		return registry.Set(&policy.Entry{Policy: "api", Flags: policy.Flags{Key: key}, Limits: limits, Until: limit.MaxInstant})
	}
	block := func(pattern string) registry.Edit {
		return registry.Set(&policy.Entry{Kind: policy.Block, Policy: "api", Pattern: pattern, Until: limit.MaxInstant})
	}
	change := func(edits ...registry.Edit) error {
		return r.Update(m, registry.Author{}, func(*policy.Builder, limit.Instant) ([]registry.Edit, error) { return edits, nil })
	}
	require.NoError(t, change(main(policy.KeyForm{}), block("zz"), block("10.0.0.7"), block("10.0.0.0/8"), block("*"), block("k*")))
	before := maps.Clone(m.records)
	var bad *registry.PatternError
	require.ErrorAs(t, change(main(ip)), &bad)
	require.EqualError(t, bad, "the block '10.0.0.7' of policy 'api' is for no address or network, as KEY IP needs it: delete it first")
	require.ErrorIs(t, bad, policy.ErrNetwork)
	require.Equal(t, before, m.records, "nothing has changed")
	require.False(t, r.Table().Policy([]byte("api")).Main.Key.IP)

	gone := []registry.Edit{{Kind: policy.Block, Policy: "api", Pattern: "zz"}, {Kind: policy.Block, Policy: "api", Pattern: "10.0.0.7"}}
	require.NoError(t, change(append(gone, main(ip), registry.Edit{Kind: policy.Block, Policy: "api", Pattern: "k*"})...), "the result counts, not the order")
	require.ErrorAs(t, change(block("10.1.0.0/16"), block("10.0.0.9/16")), &bad)
	require.NoError(t, change(main(policy.KeyForm{IP: true, V4: 32, V6: 64})))
	require.NoError(t, change(main(policy.KeyForm{}), block("any")))
	require.ErrorAs(t, change(main(ip)), &bad)
	require.Equal(t, "any", bad.Pattern)

	d, faults := document.Parse("f", []byte("policies: {api: {key: IP 24 56, limits: [TB 5 1 1]}, new: {key: IP 1 2, limits: [TB 5 1 1], overrides: {10.0.0.7: {limits: [TB 6 1 1]}}}}"), policy.Bounds{})
	require.Empty(t, faults)
	_, err := r.Apply(m, registry.Author{}, d, policy.Bounds{})
	require.ErrorAs(t, err, &bad, "a block that the document does not have stays")
	require.Nil(t, r.Table().Policy([]byte("new")))
	require.NoError(t, change(registry.Edit{Kind: policy.Block, Policy: "api", Pattern: "any"}))
	n, err := r.Apply(m, registry.Author{}, d, policy.Bounds{})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = r.Apply(m, registry.Author{}, d, policy.Bounds{})
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, `SET MAIN KEY IP 1 2 LIMITS TB 5 1 1`, "SET "+registry.Text(r.Table().Policy([]byte("new")).Main, nil))

	m.records["block/api/any"] = m.records["block/api/*"]
	again := m.reload(t)
	require.Equal(t, ip, again.Table().Policy([]byte("api")).Main.Key)
	require.Empty(t, again.Changes(registry.Which{Count: 9, Pattern: "10.0.0.7"}))
	require.NoError(t, change(block("10.0.0.7/32")))
	require.Len(t, r.Changes(registry.Which{Count: 9, Pattern: "::ffff:10.0.0.7"}), 1)
}
