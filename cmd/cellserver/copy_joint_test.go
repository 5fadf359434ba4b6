package main

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/remote/states"
)

// allOf returns the live keys of database 0.
func allOf(ks *keyspace.Keyspace) map[string]entry.Entry {
	v := ks.NewHandle()
	defer v.Close()
	v.Refresh()
	all := map[string]entry.Entry{}
	for cursor := uint64(0); ; {
		cursor = v.ScanEntries(0, cursor, 1000, func(key []byte, e entry.Entry) {
			e.Value = slices.Clone(e.Value)
			all[string(key)] = e
		})
		if cursor == 0 {
			return all
		}
	}
}

// TestStatesOfPoliciesAreOneValueInAStore: the keys that a directory has of a policy and key become one value, and the
// same keys again.
func TestStatesOfPoliciesAreOneValueInAStore(t *testing.T) {
	s, err := inproc.Feed(copyStart)
	require.NoError(t, err)
	defer s.Close()
	for _, words := range [][]string{
		{"RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "600", "LOG", "TB", "9", "1", "60", "CC", "5", "600", "BAN", "1", "600", "600"},
		{"RL.POLICY", "TRY", "api", "LIMITS", "SW", "1", "600", "FIXED", "SW", "7", "600", "BAN", "1", "600", "600"},
		{"RL.POLICY", "SET", "one", "LIMITS", "SW", "2", "600"},
		{"RL.POLICY", "SET", "gone", "LIMITS", "SW", "2", "600", "SW", "3", "600"},
		{"RL.USE", "gone", "k"},
		{"RL.POLICY", "DEL", "gone"},
		{"RL.USE", "one", "k"},
		{"RL.USE", "one", "id", "ID", "t"},
		{"SET", "one:text", "x"},
		{"INCREX", "one:number"},
		{"SW.ALLOW", "plain", "3", "600"},
		{"SW.ALLOW", "none:k#2", "3", "600"},
	} {
		_, err := s.Do(words...)
		require.NoError(t, err)
	}
	keys := []string{"k", "k#2", "k#2#", "a:b", "#ban:x", "k#16"}
	for _, key := range keys {
		for range 4 {
			_, err := s.Do("RL.USE", "api", key, "1", "MEMBER", "m")
			require.NoError(t, err)
		}
	}
	ks := s.Server().Keyspace()
	before := allOf(ks)
	dir, err := policiesOfDir(ks)
	require.NoError(t, err)
	v := ks.NewHandle()
	defer v.Close()
	v.Refresh()
	c := &copying{migration: migration{w: io.Discard, match: "*", skipped: map[string]int{}}, kinds: map[string]int{}}
	there := map[string]entry.Entry{}
	parts := 0
	for key, e := range before {
		m := moving{key: []byte(key), entry: e}
		switch is := c.joint(v, dir.Table(), &m); {
		case !is:
			require.NotContains(t, key, "api", key)
		case m.part:
			parts++
		default:
			require.Empty(t, m.why)
			require.NotContains(t, there, string(m.key))
			there[string(m.key)] = m.entry
		}
	}
	require.Len(t, there, len(keys)+2)
	require.Equal(t, 6*len(keys), parts, "of three limits, two of the candidate and the bans of both")
	require.Equal(t, before["one:k"], there["one:k"], "one limit is its own first part")
	require.Equal(t, states.Joint, there["one:id"].Kind, "it remembers a call")

	back := keyspace.New(keyspace.Options{Clock: clocktest.New(copyStart)})
	defer back.Close()
	w := back.NewHandle()
	defer w.Close()
	stale := policy.AppendStateKey(nil, []byte("api"), []byte("k"), 9, false)
	require.NoError(t, back.Restore(0, stale, before["plain"]))
	for _, dry := range []bool{true, false} {
		c.dryRun = dry
		for key, e := range there {
			if e.Kind == states.Joint {
				m := moving{key: []byte(key), entry: e, done: true}
				require.NoError(t, c.readJoint(back, w, &m, copyStart))
				require.Empty(t, m.why, key)
			}
		}
		if dry {
			require.Len(t, allOf(back), 1)
		}
	}
	after := allOf(back)
	for key := range before {
		if len(key) > 3 && key[:3] == "api" || key == "one:id" {
			require.Equal(t, before[key], after[key], key)
			delete(after, key)
		}
	}
	require.Empty(t, after, "a part that the store does not have is gone")
	again := moving{key: []byte("api:k"), entry: there["api:k"]}
	require.NoError(t, c.readJoint(back, w, &again, copyStart))
	require.Equal(t, isThere, again.why)

	c.latest = copyStart.Add(time.Second)
	older := moving{key: []byte("api:k"), entry: states.EntryOf(&decide.State{All: []decide.Part{{Number: 1, Entry: before["plain"]}, {Number: 2, Entry: before["plain"]}}}, nil)}
	require.NoError(t, c.readJoint(back, w, &older, copyStart))
	require.Equal(t, mayBeNewer, older.why)
	for key, why := range map[string]string{"no key of a policy": "under a key that no policy has", "api:k#2": "under a key that no policy has"} {
		m := moving{key: []byte(key), entry: older.entry}
		require.NoError(t, c.readJoint(back, w, &m, limit.MaxInstant))
		require.Contains(t, m.why, why, fmt.Sprint(key))
	}
	c.match = "none*"
	m := moving{key: []byte("api:a:b"), entry: there["api:a:b"]}
	require.NoError(t, c.readJoint(back, w, &m, copyStart.Add(time.Hour)))
	require.Equal(t, "not of the pattern", m.why)
}
