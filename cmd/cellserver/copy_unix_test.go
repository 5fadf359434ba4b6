//go:build real && unix

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/remote"
)

// fillLimiters makes a server store states of every family, including a limit of 5 that is partly
// used, and two keys that are not states.
func fillLimiters(t *testing.T, dir string) {
	t.Helper()
	p := startDaemon(t, "--appendonly", "yes", "--dir", dir, "--appenddirname", "state")
	c := redis.NewClient(&redis.Options{Addr: p.addr, DisableIdentity: true})
	require.NoError(t, c.Do(t.Context(), "RL.POLICY", "SET", "api", "LIMITS", "SW", 1, 3600, "FIXED", "BAN", 2, 3600, 3600).Err())
	require.NoError(t, c.Do(t.Context(), "RL.BLOCK", "api", "mallory").Err())
	for i := range 40 {
		require.NoError(t, c.Do(t.Context(), "RL.USE", "api", i, 2).Err())
		if i%2 == 0 {
			require.NoError(t, c.Do(t.Context(), "RL.USE", "api", i).Err())
		}
		for _, words := range [][]any{
			{"CL.THROTTLE", "cell", 4, 1, 3600, 2},
			{"SW.ALLOW", "counter", 5, 3600, 2},
			{"SW.ALLOW", "log", 5, 3600, 2, "LOG"},
			{"SW.ALLOW", "fixed", 5, 3600, 2, "FIXED"},
			{"SW.ALLOW", "calendar", 5, "YEAR", 2, "ZONE", "Europe/Berlin", "FROM", "12-31"},
			{"SW.ALLOW", "buckets", 5, 3600, 2, "BUCKETS", 10},
			{"TB.ACQUIRE", "bucket", 5, 1, 3600, 2},
			{"TB.ACQUIRE", "interval", 5, 5, 3600, 2, "INTERVAL"},
			{"CC.ACQUIRE", "lease", 5, 3600, "member"},
			{"CL.THROTTLE", "short", 0, 1, 1},
			{"SET", "text", "no limiter"},
			{"INCREX", "increx", "UBOUND", 5, "EX", 3600},
		} {
			words[1] = fmt.Sprintf("{%d}%s", i, words[1])
			require.NoError(t, c.Do(t.Context(), words...).Err(), "%v", words)
		}
	}
	require.NoError(t, c.HSet(t.Context(), "hash", "a", 1).Err())
	require.NoError(t, c.Close())
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Zero(t, p.status())
}

// statesOf returns all limiters' states in a directory.
func statesOf(t *testing.T, dir string) map[string]entry.Entry {
	t.Helper()
	m := &migration{dir: dir, w: &bytes.Buffer{}}
	d, ks, err := m.open()
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	defer ks.Close()
	v := ks.NewHandle()
	defer v.Close()
	all := map[string]entry.Entry{}
	for cursor := uint64(0); ; {
		cursor = v.ScanEntries(0, cursor, 1000, func(key []byte, e entry.Entry) {
			text := e.Kind == entry.String && string(e.Value) == "no limiter"
			if !text && !e.Kind.IsCollection() && !bytes.HasSuffix(key, []byte("short")) {
				e.Value = slices.Clone(e.Value)
				all[string(key)] = entry.Entry{Kind: e.Kind, Expiry: e.Expiry, Value: e.Value}
			}
		})
		if cursor == 0 {
			return all
		}
	}
}

// TestCopyMovesStatesIntoAStoreAndBack rehearses the move from a single server to a store and
// back: states arrive with their exact nanoseconds, newer states stay, and nothing else is
// copied.
func TestCopyMovesStatesIntoAStoreAndBack(t *testing.T) {
	dir := t.TempDir()
	fillLimiters(t, dir)
	from, back := filepath.Join(dir, "state"), filepath.Join(dir, "back")
	wanted := statesOf(t, from)
	require.Len(t, wanted, 460)
	node := storetest.Best(t).Single(t, storetest.Options{Password: "secret"})
	url := node.URL()
	do := func(args ...string) string {
		var out bytes.Buffer
		require.NoError(t, copyStates(args, &out), out.String())
		return out.String()
	}

	require.Contains(t, do(from, url, "--dry-run"), "would be copied")
	require.Equal(t, int64(0), node.Do("DBSIZE"))
	said := do(from, url, "--match", "{[0-9]}*")
	require.Contains(t, said, "10 of SW.ALLOW log\n")
	require.Contains(t, said, "\n1 policies, 0 candidates, 0 overrides, 0 boosts, 1 blocks and 0 exemptions copied\n")
	said = do(from, url)
	require.Contains(t, said, "30 of SW.ALLOW log\n")
	require.Regexp(t, `(?m)^(10\d|110) skipped: is there already$`, said, "each of the short ones may be over or not")
	require.Contains(t, said, "1 skipped: not the state of a limiter: hash\n40 skipped: not the state of a limiter: string\n")
	require.Contains(t, said, "20 of further limits of policies, which are parts of these\n")
	require.Contains(t, said, "\n2 entries of policies skipped: are there already\n")
	for key, e := range wanted {
		if strings.HasPrefix(key, "api") {
			continue // a part of a value
		}
		raw, err := node.Client.Get(t.Context(), "cs:"+key).Bytes()
		require.NoError(t, err, key)
		s, err := remote.Unpack(raw)
		require.NoError(t, err)
		require.True(t, same(e, s.Entry), key)
		require.WithinRange(t, time.Unix(0, int64(s.Stamp)), time.Now().Add(-patience), time.Now().Add(time.Second))
	}

	requireSharedUse(t, url)

	require.Contains(t, do(url, back, "--dry-run"), "would be copied")
	require.NoDirExists(t, back)
	said = do(url, back)
	require.Contains(t, said, "40 of CC.ACQUIRE leases\n")
	require.Contains(t, said, "40 of policies and keys (RL.USE)\n")
	require.Contains(t, said, "\n1 policies, 0 candidates, 0 overrides, 0 boosts, 1 blocks and 0 exemptions copied\n")
	require.Equal(t, wanted, statesOf(t, back))
	for _, lasting := range []string{"*[^t]", "*[^r]t"} { // all keys but the short ones, which may be over in one place
		require.Contains(t, do(back, url, "--match", lasting), " 0 copied\n")
	}
}

// requireSharedUse checks that a server with the store knows what was used before the copy.
func requireSharedUse(t *testing.T, url string) {
	t.Helper()
	p := startDaemon(t, "--store", url, "--store-timeout", "5000", "--dir", t.TempDir())
	c := redis.NewClient(&redis.Options{Addr: p.addr, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	require.Eventually(t, func() bool { return c.Exists(t.Context(), "{7}cell").Err() == nil }, patience, time.Millisecond)
	for words, remaining := range map[string]int64{
		"CL.THROTTLE {7}cell 4 1 3600 0": 3, "SW.ALLOW {7}counter 5 3600 0": 3, "SW.ALLOW {7}log 5 3600 0 LOG": 3,
		"TB.ACQUIRE {7}interval 5 5 3600 0 INTERVAL": 3, "CC.ACQUIRE {7}lease 5 3600 another PEEK": 4,
		"SW.ALLOW {7}calendar 5 YEAR 0 ZONE Europe/Berlin FROM 12-31": 3,
	} {
		var args []any
		for word := range strings.FieldsSeq(words) {
			args = append(args, word)
		}
		reply, err := c.Do(t.Context(), args...).Int64Slice()
		require.NoError(t, err, words)
		require.Equal(t, []int64{0, 5, remaining}, reply[:3], words)
	}
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Zero(t, p.status())
}

// TestCopyKeepsWhatIsNewer tests both directions, with and without --replace.
func TestCopyKeepsWhatIsNewer(t *testing.T) {
	dir := t.TempDir()
	fillLimiters(t, dir)
	from := filepath.Join(dir, "state")
	wanted := statesOf(t, from)
	node := storetest.Redis(t).Single(t, storetest.Options{})
	do := func(args ...string) string {
		var out bytes.Buffer
		require.NoError(t, copyStates(append(args, "--match", "{0}log"), &out), out.String())
		return out.String()
	}
	do(from, node.URL())
	key := []byte("{0}log")
	changed := wanted["{0}log"]
	changed.Expiry = changed.Expiry.Add(time.Second)
	old, err := node.Client.Get(t.Context(), "cs:{0}log").Bytes()
	require.NoError(t, err)
	s, err := remote.Unpack(old)
	require.NoError(t, err)
	w, err := remote.NewPacker().Pack(key, old, remote.State{Entry: changed, Stamp: s.Stamp.Add(time.Hour)})
	require.NoError(t, err)
	require.NoError(t, node.Client.Set(t.Context(), "cs:{0}log", w.New, 0).Err())

	require.Contains(t, do(from, node.URL()), "1 skipped: the store has a newer state\n")
	require.Contains(t, do(node.URL(), from), "1 of SW.ALLOW log\n", "it is newer than the directory")
	require.Equal(t, changed, statesOf(t, from)["{0}log"])
	w, err = remote.NewPacker().Pack(key, w.New, remote.State{Entry: wanted["{0}log"], Stamp: s.Stamp.Add(-time.Hour)})
	require.NoError(t, err)
	require.NoError(t, node.Client.Set(t.Context(), "cs:{0}log", w.New, 0).Err())
	require.Contains(t, do(node.URL(), from), "1 skipped: the directory may have a newer state\n")
	require.Contains(t, do(node.URL(), from, "--replace"), "1 of SW.ALLOW log\n")
	require.Equal(t, wanted["{0}log"], statesOf(t, from)["{0}log"])

	require.NoError(t, node.Client.Set(t.Context(), "cs:{0}log", "foreign", 0).Err())
	require.Contains(t, do(from, node.URL(), "--replace"), "1 skipped: the store has something else at this key\n")
	require.Contains(t, do(node.URL(), from), "1 skipped: not the state of a limiter\n")
}

// TestCopyIntoAStoreThatRefusesFails: an incomplete copy ends with an error.
func TestCopyIntoAStoreThatRefusesFails(t *testing.T) {
	dir := t.TempDir()
	fillLimiters(t, dir)
	from := filepath.Join(dir, "state")
	node := storetest.Redis(t).Single(t, storetest.Options{Args: []string{"--maxmemory", "1", "--maxmemory-policy", "noeviction"}})
	var out bytes.Buffer
	require.ErrorContains(t, copyStates([]string{from, node.URL()}, &out), "OOM")
	require.Contains(t, out.String(), "0 copied before it failed\n")
	for want, args := range map[string][]string{
		"usage: cellserver copy":               {from},
		"usage: ":                              {from, from},
		"unknown scheme":                       {from, "http://127.0.0.1:1"},
		"contains no state":                    {filepath.Join(dir, "none"), node.URL()},
		"only databases 0 to 15":               {from, node.URL(), "--db", "16"},
		"unknown option --repalce, did you me": {from, node.URL(), "--repalce"},
	} {
		require.ErrorContains(t, copyStates(args, &out), want)
	}
}

// TestCopySaysWhyAStoreDoesNotAnswer: the tool reports a wrong password at once.
func TestCopySaysWhyAStoreDoesNotAnswer(t *testing.T) {
	dir := t.TempDir()
	fillLimiters(t, dir)
	from := filepath.Join(dir, "state")
	node := storetest.Redis(t).Single(t, storetest.Options{Password: "secret"})
	var out bytes.Buffer
	for want, url := range map[string]string{
		"the store does not answer: WRONGPASS": strings.Replace(node.URL(), ":secret@", ":canary@", 1),
		"the store does not answer: NOAUTH":    strings.Replace(node.URL(), ":secret@", "", 1),
	} {
		err := copyStates([]string{from, url}, &out)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "canary")
	}
}
