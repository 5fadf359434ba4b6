package keyspace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

// changeLog is an observer that logs its notifications.
type changeLog struct{ told []string }

func (l *changeLog) Changed(key []byte, expired bool) {
	if expired {
		l.told = append(l.told, "expired "+string(key))
		return
	}
	l.told = append(l.told, string(key))
}

func (l *changeLog) Flushed()  { l.told = append(l.told, "flushed") }
func (l *changeLog) Unlocked() { l.told = append(l.told, "released") }

func (l *changeLog) take() []string {
	told := l.told
	l.told = nil
	return told
}

// TestObserverIsNotifiedOfEveryChange changes keys in every way. The observer is notified of each
// of these changes, and of nothing else.
func TestObserverIsNotifiedOfEveryChange(t *testing.T) {
	clock := clocktest.New(limit.Instant(time.Hour))
	ks := keyspace.New(keyspace.Options{Clock: clock})
	t.Cleanup(ks.Close)
	v := ks.NewHandle()
	var l changeLog
	v.Observe(&l)
	a, b := []byte("a"), []byte("b")
	set := func(key []byte) { setString(t, v, string(key), "v") }
	set(a)
	v.Flush(0)
	require.Empty(t, l.take(), "nobody has asked for it")
	ks.StartObserving()
	for name, c := range map[string]struct {
		do   func()
		want []string
	}{
		"set":     {func() { set(a) }, []string{"a", "released"}},
		"remove":  {func() { set(a); l.take(); v.Delete(0, a) }, []string{"a", "released"}},
		"absent":  {func() { v.Delete(0, a) }, nil},
		"read":    {func() { set(a); l.take(); v.Exists(0, a) }, nil},
		"rename":  {func() { set(a); l.take(); v.Rename(0, a, b, false) }, []string{"a", "b", "released"}},
		"expire":  {func() { set(a); l.take(); v.Expire(0, a, v.Now()+1000, 0) }, []string{"a", "released"}},
		"persist": {func() { set(a); l.take(); v.Persist(0, a) }, nil},
		"flush":   {func() { v.Flush(3) }, []string{"flushed", "released"}},
		"held": {func() {
			v.Lock([]keyspace.Ref{{Key: a}, {Key: b}})
			set(a)
			set(b)
			v.Unlock()
		}, []string{"a", "b", "released"}},
		"found to have expired": {func() {
			set(a)
			v.Expire(0, a, v.Now()+limit.Instant(time.Second), 0)
			l.take()
			clock.Advance(2 * time.Second)
			v.Refresh()
			require.False(t, v.Exists(0, a))
			require.False(t, v.Exists(0, a), "once only")
		}, []string{"expired a", "released"}},
		"found to have expired and set": {func() {
			set(a)
			v.Expire(0, a, v.Now()+limit.Instant(time.Second), 0)
			l.take()
			clock.Advance(2 * time.Second)
			v.Refresh()
			set(a)
			require.True(t, v.Exists(0, a))
		}, []string{"a", "released"}},
	} {
		v.FlushAll()
		l.take()
		c.do()
		require.Equal(t, c.want, l.take(), name)
	}
}

// observed returns a keyspace that notifies l of the changes of its handle and of its sweep, and in
// which the key a has expired.
func observed(t *testing.T, l *changeLog) (*keyspace.Keyspace, *keyspace.Handle) {
	t.Helper()
	clock := clocktest.New(limit.Instant(time.Hour))
	ks := keyspace.New(keyspace.Options{Clock: clock})
	t.Cleanup(ks.Close)
	v := ks.NewHandle()
	setString(t, v, "a", "v")
	v.Expire(0, []byte("a"), v.Now()+1000, 0)
	clock.Advance(time.Second)
	v.Refresh()
	v.Observe(l)
	ks.ObserveSweep(l)
	ks.StartObserving()
	return ks, v
}

// TestObserverOfTheSweepIsNotifiedOfExpiredKeys expires keys that no command has looked up.
func TestObserverOfTheSweepIsNotifiedOfExpiredKeys(t *testing.T) {
	var l changeLog
	ks, _ := observed(t, &l)
	require.Equal(t, 1, ks.Sweep(1<<20).Removed)
	require.Equal(t, []string{"expired a", "released"}, l.take())
}

// TestObservedExpiryIsRememberedWithinBounds: a command that locks keys and looks up an expired key
// again and again does not take memory for each lookup.
func TestObservedExpiryIsRememberedWithinBounds(t *testing.T) {
	var l changeLog
	_, v := observed(t, &l)
	v.LockAll()
	for range 10_000 {
		v.Exists(0, []byte("a"))
	}
	seen := v.Seen()
	v.Unlock() // before the checks: after a failed one Close would wait for it
	require.LessOrEqual(t, seen, 1024)
	require.Equal(t, []string{"expired a", "released"}, l.take())
}
