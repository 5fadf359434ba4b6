package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/remote/engine"
)

const copyStart limit.Instant = 1_700_000_000e9

// recordsEngine runs the scripts of records in memory.
type recordsEngine struct{ *remotedouble.Records }

func (e recordsEngine) Eval(_ context.Context, script string, keys, args []string) (any, error) {
	return e.Run(script, keys, args), nil
}

func (e recordsEngine) Confirm(ctx context.Context, script string, keys, args []string, d time.Duration) (engine.Confirmed, error) {
	return e.Replicas.Confirm(ctx, e.Run(script, keys, args), d)
}

func (e recordsEngine) Listen(ctx context.Context, channel string, heard func(err error)) {
	e.Channel.Listen(ctx, channel, heard)
}

// sides are a directory and a store.
type sides struct {
	t      *testing.T
	ks     *keyspace.Keyspace
	engine recordsEngine
}

func newSides(t *testing.T) *sides {
	t.Helper()
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(copyStart)})
	t.Cleanup(ks.Close)
	return &sides{t, ks, recordsEngine{remotedouble.NewRecords()}}
}

// both reads both sides anew.
func (s *sides) both() (dir, store side) {
	s.t.Helper()
	dir, err := policiesOfDir(s.ks)
	require.NoError(s.t, err)
	store, err = policiesOfStore(s.engine, func() limit.Instant { return copyStart })
	require.NoError(s.t, err)
	return dir, store
}

// set sets entries at one side.
func set(t *testing.T, at side, entries ...*policy.Entry) {
	t.Helper()
	require.NoError(t, at.Update(at.store, registry.Author{What: "test"}, func(*policy.Builder, limit.Instant) (edits []registry.Edit, err error) {
		for _, e := range entries {
			edits = append(edits, registry.Set(e))
		}
		return edits, nil
	}))
}

func limitsOf(t *testing.T, text string) *policy.Limits {
	t.Helper()
	var words [][]byte
	for w := range strings.FieldsSeq(text) {
		words = append(words, []byte(w))
	}
	limits, err := policy.ParseLimits(words, false, policy.Bounds{})
	require.Empty(t, err)
	return limits
}

// everyKind has entries of every kind, and one that has ended.
func everyKind(t *testing.T) []*policy.Entry {
	t.Helper()
	main := &policy.Entry{Policy: "api", Limits: limitsOf(t, "SW 5 60 TB 9 1 60 BAN 3 60 600"), Comment: "all", File: true, Until: limit.MaxInstant, Since: 5}
	main.Shadow, main.Notify, main.Classes = true, 80, "low 30%"
	return []*policy.Entry{
		main,
		{Kind: policy.Candidate, Policy: "api", Limits: limitsOf(t, "SW 4 60"), Until: limit.MaxInstant},
		{Kind: policy.Override, Policy: "api", Pattern: "vip*", Limits: limitsOf(t, "NONE"), Until: copyStart.Add(time.Hour)},
		{Kind: policy.Boost, Policy: "api", Pattern: "a", Factor: 1500, Until: copyStart.Add(time.Minute)},
		{Kind: policy.Block, Policy: "api", Pattern: "b", Comment: "a loop", Until: limit.MaxInstant},
		{Kind: policy.Exempt, Policy: "api", Pattern: "c", Until: limit.MaxInstant},
		{Kind: policy.Exempt, Policy: "api", Pattern: "over", Until: copyStart},
	}
}

// TestCopyMovesPoliciesBothWays: all entries that are in force arrive, and those of a file are no longer those of a file. A
// second copy finds them there.
func TestCopyMovesPoliciesBothWays(t *testing.T) {
	s := newSides(t)
	dir, store := s.both()
	set(t, dir, everyKind(t)...)
	move := func(from, to side, dry bool) string {
		p := &policyCopy{from: from, to: to}
		require.NoError(t, p.check())
		if !dry {
			require.NoError(t, p.run())
		}
		var out strings.Builder
		p.report(&out, "copied")
		return out.String()
	}
	const copied = "1 policies, 1 candidates, 1 overrides, 1 boosts, 1 blocks and 1 exemptions copied\n"
	const there = "0 policies, 0 candidates, 0 overrides, 0 boosts, 0 blocks and 0 exemptions copied\n6 entries of policies skipped: are there already\n"
	require.Equal(t, copied, move(dir, store, true))
	require.Empty(t, store.entries(copyStart))
	require.Equal(t, copied, move(dir, store, false))
	dir, store = s.both()
	want := dir.entries(copyStart)
	require.Len(t, want, 6)
	require.True(t, store.Table().Policy([]byte("api")).Main.Shadow)
	require.False(t, store.Table().Policy([]byte("api")).Main.File)
	require.Equal(t, want, store.entries(copyStart))
	require.Equal(t, there, move(dir, store, false))
	require.Equal(t, there, move(store, dir, false))

	back := newSides(t)
	empty, _ := back.both()
	require.Equal(t, copied, move(store, empty, false))
	empty, _ = back.both() // of the records in the directory
	require.Equal(t, want, empty.entries(copyStart))
	require.Len(t, empty.Changes(registry.Which{Count: 10}), 1)
}

// TestCopyReplacesNoPolicyUnasked: an entry of the other side that differs is replaced only with --replace. Other entries stay.
func TestCopyReplacesNoPolicyUnasked(t *testing.T) {
	s := newSides(t)
	dir, store := s.both()
	set(t, dir, everyKind(t)...)
	other := &policy.Entry{Kind: policy.Boost, Policy: "api", Pattern: "a", Factor: 1501, Until: copyStart.Add(time.Minute)}
	more := &policy.Entry{Policy: "more", Limits: limitsOf(t, "SW 1 60"), Until: limit.MaxInstant}
	set(t, store, more, other)
	p := &policyCopy{from: dir, to: store}
	for _, f := range []func() error{p.check, p.run} {
		err := f()
		require.ErrorIs(t, err, errDiffers)
		require.ErrorContains(t, err, `boost "a" of policy "api" is different there`)
	}
	_, store = s.both()
	require.Len(t, store.entries(copyStart), 2)
	dir, store = s.both()
	p = &policyCopy{from: dir, to: store, replace: true}
	require.NoError(t, p.check())
	require.NoError(t, p.run())
	_, store = s.both()
	left := slices.DeleteFunc(store.entries(copyStart), func(e *policy.Entry) bool { return e.Policy == "more" })
	require.Equal(t, dir.entries(copyStart), left)
	require.NotNil(t, store.Table().Policy([]byte("more")))
}

// TestCopyOfManyEntries: they are copied in several changes.
func TestCopyOfManyEntries(t *testing.T) {
	s := newSides(t)
	dir, store := s.both()
	entries := []*policy.Entry{{Policy: "api", Limits: limitsOf(t, "SW 5 60"), Until: limit.MaxInstant}}
	for i := range 105 {
		entries = append(entries, &policy.Entry{Kind: policy.Block, Policy: "api", Pattern: fmt.Sprint("k", i), Until: limit.MaxInstant})
	}
	set(t, dir, entries...)
	p := &policyCopy{from: dir, to: store, most: 50}
	require.NoError(t, p.check())
	require.NoError(t, p.run())
	require.Equal(t, 105, p.copied[policy.Block])
	require.Len(t, s.engine.Done, 3)
	dir, store = s.both()
	require.Len(t, dir.entries(copyStart), 106)
	require.Equal(t, dir.entries(copyStart), store.entries(copyStart))
}

// TestCopyRefusesPoliciesThatItCannotRead: a later version may have written them.
func TestCopyRefusesPoliciesThatItCannotRead(t *testing.T) {
	s := newSides(t)
	e := entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("later")}
	require.NoError(t, s.ks.Restore(registry.Database, (&policy.Entry{Policy: "api"}).AppendKey(nil), e))
	_, err := policiesOfDir(s.ks)
	require.ErrorContains(t, err, "a policy of the directory cannot be read by this version")
	require.ErrorContains(t, err, "--without-policies copies only the states")
}
