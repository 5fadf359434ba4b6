package keyspace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
)

func TestFlushLeavesTheDatabaseOfTheServer(t *testing.T) {
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(limit.Instant(time.Hour))})
	t.Cleanup(ks.Close)
	v := ks.NewHandle()
	require.Equal(t, 16, ks.Databases())
	require.True(t, ks.HasDatabase(keyspace.System))
	require.False(t, ks.HasDatabase(keyspace.System+1))
	always := keyspace.SetOptions{Expiry: entry.NoExpiry}
	for db := range keyspace.System + 1 {
		_, err := v.SetString(db, []byte("k"), []byte("v"), always)
		require.NoError(t, err)
	}

	v.FlushAll()

	for db := range keyspace.System {
		require.False(t, v.Exists(db, []byte("k")))
	}
	require.True(t, v.Exists(keyspace.System, []byte("k")))
	for _, db := range ks.Stats().Databases {
		require.Zero(t, db.Keys)
	}
	require.Len(t, ks.Stats().Databases, 16, "no statistic has it")
}

func TestNoObserverIsToldOfTheDatabaseOfTheServer(t *testing.T) {
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(limit.Instant(time.Hour))})
	t.Cleanup(ks.Close)
	v := ks.NewHandle()
	told := &changeLog{}
	v.Observe(told)
	v.StartObserving()
	always := keyspace.SetOptions{Expiry: entry.NoExpiry}
	_, err := v.SetString(keyspace.System, []byte("kept"), []byte("v"), always)
	require.NoError(t, err)
	_, err = v.SetString(0, []byte("seen"), []byte("v"), always)
	require.NoError(t, err)
	v.Delete(keyspace.System, []byte("kept"))
	require.Equal(t, []string{"seen", "released"}, told.take())
}

func TestItIsSaidWhatRecordsMakeOfTheDatabaseOfTheServer(t *testing.T) {
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(limit.Instant(time.Hour))})
	t.Cleanup(ks.Close)
	var told []string
	ks.ObserveSystem(func(key []byte, e entry.Entry) {
		if key == nil {
			told = append(told, "all gone")
			return
		}
		told = append(told, string(key)+"="+string(e.Value))
	})
	put := func(db int, key, value string) []byte {
		var r effect.Record
		r.Put(db, []byte(key), &entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte(value)})
		buf, _ := r.Parts()
		return buf
	}
	now := ks.Clock().Now()
	require.NoError(t, ks.ApplyRecord(put(keyspace.System, "a", "1"), now))
	require.NoError(t, ks.ApplyRecord(append(put(0, "b", "2"), put(keyspace.System, "c", "3")...), now))
	var gone effect.Record
	gone.Remove(keyspace.System, []byte("a"))
	buf, _ := gone.Parts()
	require.NoError(t, ks.ApplyRecord(buf, now))
	require.NoError(t, ks.Restore(keyspace.System, []byte("d"), entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("4")}))
	require.NoError(t, ks.Restore(1, []byte("e"), entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("5")}))
	require.Error(t, ks.Restore(17, []byte("e"), entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("5")}))
	ks.Empty()
	require.Equal(t, []string{"a=1", "c=3", "a=", "d=4", "all gone"}, told)

	found := 0
	require.NoError(t, ks.Snapshot(func(int, []byte, entry.Entry) { found++ }, func() error { return nil }))
	require.Zero(t, found)
}
