package persistence_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
)

// The real file system behaves like that of the tests.
func TestFileSystemOfTheMachineBehavesAsTheOneOfTests(t *testing.T) {
	clock := clocktest.New(begin)
	o := options(nil, clock)
	o.FS, o.Path = persistence.OS{}, filepath.Join(t.TempDir(), "a", "b")
	want := ""
	for life := range 4 {
		dir, err := persistence.Open(o)
		require.NoError(t, err)
		_, err = persistence.Open(o)
		require.ErrorIs(t, err, persistence.ErrLocked)
		ks := keyspace.New(keyspace.Options{Clock: clock, Shards: 4})
		require.NoError(t, dir.Load(ks, &persistence.Progress{}))
		require.Equal(t, want, stateOf(ks))
		log, err := dir.Start(persistence.LogOptions{Policy: persistence.SyncAlways})
		require.NoError(t, err)
		ks.SetJournal(log)
		v := ks.NewHandle()
		for i := range 500 {
			require.NoError(t, v.Put(0, []byte{byte(i), byte(life)}, entry.String, []byte("v"), entry.NoExpiry))
			if i == 250 && life%2 == 1 {
				_, err := dir.Rewrite(ks)
				require.NoError(t, err)
			}
		}
		woken := make(chan struct{}, 8)
		position := v.TakePosition()
		for log.Await(position, wakeUp(woken)) == persistence.Pending {
			<-woken
		}
		require.Equal(t, persistence.Kept, log.Await(position, wakeUp(woken)))
		want = stateOf(ks)
		require.NoError(t, dir.Close())
		require.Equal(t, persistence.Lost, log.Await(log.Append([]byte{65, 0}, nil, begin), wakeUp(woken)))
	}
}

type wakeUp chan struct{}

// Wake implements persistence.Waker.
func (w wakeUp) Wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}
