package persistence_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

var someOrigin = persistence.Origin{
	History: "0123456789abcdef0123456789abcdef01234567", Offset: 1<<62 - 1, Primary: "10.0.0.1:6379",
}

// originOn returns the origin in the files on a disk.
func originOn(t *testing.T, fsys *faultfs.FS) *persistence.Origin {
	dir, err := persistence.Open(options(fsys.Kill(), clocktest.New(begin)))
	require.NoError(t, err)
	defer func() { require.NoError(t, dir.Close()) }()
	return dir.Origin()
}

// TestOriginCountsUntilEffects: the origin is found again after a stop, a crash and a start, until
// an effect is appended.
func TestOriginCountsUntilEffects(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncEverySecond)
	put := func() {
		s.handle.Refresh()
		require.NoError(t, s.handle.Put(0, []byte("k"), entry.String, []byte("v"), entry.NoExpiry))
		require.NoError(t, s.log.Sync())
	}
	holds := func(want bool) {
		t.Helper()
		if o := originOn(t, fsys); want {
			require.Equal(t, &someOrigin, o)
		} else {
			require.Nil(t, o)
		}
	}
	put()
	holds(false)
	require.NoError(t, s.log.NoteOrigin(&someOrigin))
	holds(true)
	s.clock.Advance(time.Second)
	require.NoError(t, s.log.NoteClock())
	require.NoError(t, s.log.Sync())
	holds(true)
	s.close()
	holds(true)

	s = mustOpen(t, fsys, persistence.SyncEverySecond)
	holds(true)
	s.close()
	s = mustOpen(t, fsys, persistence.SyncEverySecond)
	put()
	holds(false)
	require.NoError(t, s.log.NoteOrigin(&someOrigin))
	put()
	holds(false)
	require.NoError(t, s.log.NoteOrigin(&someOrigin))
	_, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	holds(false) // the base does not have it
	s.close()
}

// TestOriginOutOfForm: an origin that no replica can have is not recorded. In a file it is damage,
// even if its checksum is right.
func TestOriginOutOfForm(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncAlways)
	for name, bad := range map[string]persistence.Origin{
		"no history":     {},
		"a long history": {History: someOrigin.History + "0"},
		"capitals":       {History: strings.ToUpper(someOrigin.History)},
		"a far offset":   {History: someOrigin.History, Offset: 1 << 62},
		"a long address": {History: someOrigin.History, Primary: strings.Repeat("a", 513)},
	} {
		require.EqualError(t, s.log.NoteOrigin(&bad), "an origin record that is out of form", name)
	}
	s.close()
	require.Nil(t, originOn(t, fsys))

	name := logFile(fsys)
	head := fsys.Content(name)[:persistence.HeaderSize]
	for _, body := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("g", 40), strings.Repeat("0", 47)} {
		payload := append([]byte{128}, body...)
		payloads := append([]byte{byte(len(payload) - 1), 0}, payload...)
		_, err := persistence.Open(options(with(fsys, name, resealed(bytes.Clone(head), payloads)), s.clock))
		require.ErrorContains(t, err, "an origin record that is out of form")
	}
}

// TestOriginWhereNothingIsWritten: a log that was given up does not record an origin.
func TestOriginWhereNothingIsWritten(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncAlways)
	s.log.Suspend(bytes.ErrTooLarge)
	require.ErrorIs(t, s.log.NoteOrigin(&someOrigin), bytes.ErrTooLarge)
	require.NoError(t, s.dir.Close())
	require.Nil(t, originOn(t, fsys))
}
