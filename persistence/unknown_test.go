package persistence_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// backedUp returns a disk whose directory data has a base and an increment with two keys, and their
// state.
func backedUp(t *testing.T) (fsys *faultfs.FS, state string) {
	t.Helper()
	fsys = faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncNo)
	put := func(key string) {
		s.handle.Refresh()
		require.NoError(t, s.handle.Put(0, []byte(key), entry.String, []byte("v"), entry.NoExpiry))
	}
	put("a")
	_, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	put("b")
	require.NoError(t, s.log.Sync())
	state = s.state()
	s.close()
	return fsys, state
}

// TestUnknownParts tests files of a later version for the rule of docs/formats/aof.md: an unknown
// part that may have state is refused and named, and one with information only is ignored.
func TestUnknownParts(t *testing.T) {
	fsys, state := backedUp(t)
	record := func(payload string) func(content []byte) []byte {
		return func(content []byte) []byte {
			payloads := append([]byte{byte(len(payload) - 1), 0}, payload...)
			return resealed(content, append(payloads, unsealed(content)...))
		}
	}
	manifest := func(old, by string) func(content []byte) []byte {
		return func(content []byte) []byte {
			lines, _, _ := bytes.Cut(content, []byte("checksum "))
			lines = bytes.ReplaceAll(lines, []byte(old), []byte(by))
			return fmt.Appendf(lines, "checksum %08x\n", crc32.Checksum(lines, crc32.MakeTable(crc32.Castagnoli)))
		}
	}
	for name, c := range map[string]struct {
		suffix string
		change func(content []byte) []byte
		want   string // of the error; empty if the part is ignored
	}{
		"a record of type 5":           {".log", record("\x05news"), "a record of type 5 is not known"},
		"a record of type 127":         {".log", record("\x7fnews"), "a record of type 127 is not known"},
		"a record of type 129":         {".log", record("\x81news"), ""},
		"a record of type 255":         {".log", record("\xff"), ""},
		"an effect of kind 15":         {".log", record("\x01\x0f\x00\x01k\x00\x00\x00\x00\x00\x00\x00\x00\x01v"), "bytes are not an effect"},
		"an effect of first byte 67":   {".log", record("\x01\x43\x00"), "record 1: "},
		"a block of type 3":            {".snap", record("\x03block"), "block"},
		"a block of type 200":          {".snap", record("\xc8block"), "block"},
		"a key of the manifest":        {".manifest", manifest(" type ", " colour red type "), ""},
		"another kind of file":         {".manifest", manifest(" type i", " type x"), `"x" is not a type`},
		"another version":              {".manifest", manifest("version 1", "version 2"), `format version "2" is unknown`},
		"another value of a known key": {".manifest", manifest(" type ", " restored partly type "), ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := fsys.Kill()
			for _, name := range files.Names() {
				if strings.HasSuffix(name, c.suffix) {
					files.SetContent(name, c.change(files.Content(name)))
				}
			}
			var out strings.Builder
			checked := persistence.Check(files.Kill(), "data", false, &out)
			s, err := open(t, files, clocktest.New(begin), persistence.SyncNo)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.Error(t, checked, "check-aof finds it, too")
				return
			}
			require.NoError(t, err)
			require.NoError(t, checked, out.String())
			require.NoError(t, persistence.Dump(files.Kill(), "data", io.Discard))
			require.Equal(t, state, s.state())
			s.close()
		})
	}
}
