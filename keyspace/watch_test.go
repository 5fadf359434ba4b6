package keyspace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
)

// overStorages runs a test once for each kind of storage.
func overStorages(t *testing.T, run func(t *testing.T, o keyspace.Options)) {
	for _, name := range keyspace.Storages() {
		t.Run(name, func(t *testing.T) { run(t, keyspace.Options{}.With(name)) })
	}
}

func TestWatch(t *testing.T) {
	alive, absent := []byte("alive"), []byte("absent")
	for _, row := range []struct {
		name string
		key  []byte // the watched key, in database 0
		do   func(t *testing.T, v *keyspace.Handle, c *clocktest.Clock)
		want bool
	}{
		{"nothing happens", alive, func(*testing.T, *keyspace.Handle, *clocktest.Clock) {}, false},
		{"a call that consumes", alive, func(t *testing.T, v *keyspace.Handle, _ *clocktest.Clock) {
			_, err := asks.Throttle(v, 0, alive, quota(t), 1)
			require.NoError(t, err)
		}, true},
		{"a call that is denied", alive, func(t *testing.T, v *keyspace.Handle, _ *clocktest.Clock) {
			d, err := asks.Throttle(v, 0, alive, quota(t), 17)
			require.NoError(t, err)
			require.False(t, d.Allowed())
		}, false},
		{"a call that only looks", alive, func(t *testing.T, v *keyspace.Handle, _ *clocktest.Clock) {
			_, err := asks.Throttle(v, 0, alive, quota(t), 0)
			require.NoError(t, err)
		}, false},
		{"the first call", absent, func(t *testing.T, v *keyspace.Handle, _ *clocktest.Clock) {
			_, err := asks.Throttle(v, 0, absent, quota(t), 1)
			require.NoError(t, err)
		}, true},
		{"the same key of another database", alive, func(t *testing.T, v *keyspace.Handle, _ *clocktest.Clock) {
			_, err := asks.Throttle(v, 1, alive, quota(t), 1)
			require.NoError(t, err)
			v.Delete(1, alive)
		}, false},
		{"a delete", alive, func(_ *testing.T, v *keyspace.Handle, _ *clocktest.Clock) { v.Delete(0, alive) }, true},
		{"a delete of nothing", absent, func(_ *testing.T, v *keyspace.Handle, _ *clocktest.Clock) { v.Delete(0, absent) }, false},
		{"an expiry set", alive, func(_ *testing.T, v *keyspace.Handle, _ *clocktest.Clock) {
			v.Expire(0, alive, t0.Add(time.Hour), 0)
		}, true},
		{"a flush of it", alive, func(_ *testing.T, v *keyspace.Handle, _ *clocktest.Clock) { v.Flush(0) }, true},
		{"a flush of everything", alive, func(_ *testing.T, v *keyspace.Handle, _ *clocktest.Clock) { v.FlushAll() }, true},
		{"a flush of another database", alive, func(_ *testing.T, v *keyspace.Handle, _ *clocktest.Clock) { v.Flush(1) }, false},
		{"a flush without the key", absent, func(_ *testing.T, v *keyspace.Handle, _ *clocktest.Clock) { v.FlushAll() }, false},
		{"a rename away", alive, func(_ *testing.T, v *keyspace.Handle, _ *clocktest.Clock) {
			v.Rename(0, alive, []byte("other"), false)
		}, true},
		{"a rename onto it", absent, func(_ *testing.T, v *keyspace.Handle, _ *clocktest.Clock) {
			v.Rename(0, alive, absent, false)
		}, true},
		{"its expiry, not found yet", alive, func(_ *testing.T, _ *keyspace.Handle, c *clocktest.Clock) {
			c.Advance(time.Hour)
		}, true},
		{"its expiry, swept", alive, func(t *testing.T, v *keyspace.Handle, c *clocktest.Clock) {
			c.Advance(time.Hour)
			v.Refresh()
			require.False(t, v.Exists(0, alive))
			v.Keyspace().Sweep(1000)
		}, true},
		{"its expiry, overwritten", alive, func(t *testing.T, v *keyspace.Handle, c *clocktest.Clock) {
			c.Advance(time.Hour)
			v.Refresh()
			_, err := asks.Throttle(v, 0, alive, quota(t), 1)
			require.NoError(t, err)
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			overStorages(t, func(t *testing.T, o keyspace.Options) {
				ks, v, c := open(t, o)
				_, err := asks.Throttle(v, 0, alive, quota(t), 1)
				require.NoError(t, err)
				other := ks.NewHandle()
				var w keyspace.Watcher
				v.Watch(&w, 0, row.key)
				v.Watch(&w, 0, row.key) // a second Watch has no effect

				row.do(t, other, c)
				v.Refresh()
				v.Lock(w.WatchedRefs(nil))
				require.Equal(t, row.want, v.Dirty(&w))
				v.Unlock()

				v.Unwatch(&w)
				require.False(t, v.Dirty(&w))
				require.NoError(t, other.Put(0, row.key, entry.String, nil, entry.NoExpiry))
				require.False(t, v.Dirty(&w), "nothing is watched any more")
			})
		})
	}
}

func TestWatchOfAnExpiredKeySeesNoChange(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{})
	k := []byte("k")
	_, err := asks.Throttle(v, 0, k, quota(t), 1)
	require.NoError(t, err)
	c.Advance(time.Hour)
	v.Refresh()
	var w keyspace.Watcher
	v.Watch(&w, 0, k) // expired, but not removed yet
	require.Equal(t, 1, ks.Sweep(1000).Removed)
	require.False(t, v.Dirty(&w), "to go on not existing is no change")
	_, err = asks.Throttle(v, 0, k, quota(t), 1)
	require.NoError(t, err)
	require.True(t, v.Dirty(&w))
	v.Unwatch(&w)
}

func TestManyWatchOneKey(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	var a, b, c keyspace.Watcher
	for _, w := range []*keyspace.Watcher{&a, &b, &c} {
		v.Watch(w, 0, []byte("k"))
	}
	v.Unwatch(&b)
	require.NoError(t, v.Put(0, []byte("k"), entry.String, []byte("v"), entry.NoExpiry))
	require.True(t, v.Dirty(&a))
	require.False(t, v.Dirty(&b))
	require.True(t, v.Dirty(&c))
	v.Unwatch(&a)
	v.Unwatch(&c)
}
