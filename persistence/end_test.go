package persistence_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// stopped returns the disk of a server that was stopped after a change, and its log.
func stopped(t *testing.T) (fsys *faultfs.FS, s *stage, name string) {
	fsys = faultfs.New()
	s = mustOpen(t, fsys, persistence.SyncAlways)
	require.NoError(t, s.handle.Put(0, []byte("k"), entry.String, []byte("v"), entry.NoExpiry))
	require.NoError(t, s.log.Sync())
	s.close()
	return fsys, s, logFile(fsys)
}

// records returns the number of records in a log.
func records(content []byte) (n uint64) {
	for at := persistence.HeaderSize; at < len(content); n++ {
		at += 8 + int(binary.LittleEndian.Uint32(content[at:]))
	}
	return n
}

// behind appends a record to a log that ends with an end or a durable-offset record: body gets the
// payload of that record and returns the payload of the new one.
func behind(content []byte, body func(last []byte) []byte) []byte {
	const size = 1 + 4*8
	payload := body(bytes.Clone(content[len(content)-size:]))
	table := crc32.MakeTable(crc32.Castagnoli)
	id := content[len(content)-size+9:][:8]
	head := binary.LittleEndian.AppendUint64(nil, records(content)+1)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(payload)))
	sum := crc32.Update(crc32.Update(crc32.Checksum(id, table), table, head), table, payload)
	content = binary.LittleEndian.AppendUint32(content, uint32(len(payload)))
	content = binary.LittleEndian.AppendUint32(content, sum)
	return append(content, payload...)
}

// Durable-offset and end records after an end record are no damage: an older version wrote a
// durable-offset record there when it stopped, and the next version another end record, before its
// own log. Nothing is cut or refused, neither now nor by later starts.
func TestDurableRecordsMayFollowTheEnd(t *testing.T) {
	for name, types := range map[string][]byte{"a durable offset": {3}, "an end": {4}, "both": {3, 4}} {
		t.Run(name, func(t *testing.T) {
			fsys, was, log := stopped(t)
			content := fsys.Content(log)
			for _, kind := range types {
				content = behind(content, func(last []byte) []byte {
					last[0] = kind
					binary.LittleEndian.PutUint64(last[25:], records(content)+1)
					return last
				})
			}
			fsys = with(fsys, log, content)
			for range 3 {
				s, err := open(t, fsys, was.clock, persistence.SyncAlways)
				require.NoError(t, err)
				require.Nil(t, s.dir.Torn())
				require.Equal(t, was.state(), s.state())
				require.NoError(t, s.handle.Put(0, []byte("k"), entry.String, []byte("v"), entry.NoExpiry))
				require.NoError(t, s.log.Sync())
				s.close()
				require.NoError(t, persistence.Check(fsys, "data", true, io.Discard))
			}
		})
	}
}

// Effects after an end record are damage that no crash explains. They are refused if a later log
// says that the file was durable, otherwise cut off, and the end record remains the end.
func TestEffectsAfterTheEndAreDamage(t *testing.T) {
	fsys, was, log := stopped(t)
	longer := behind(fsys.Content(log), func([]byte) []byte { return []byte{1, 65, 0} }) // FLUSHDB
	broken := with(fsys, log, longer)
	for i := range 3 {
		s, err := open(t, broken, was.clock, persistence.SyncAlways)
		require.NoError(t, err)
		require.Equal(t, i == 0, s.dir.Torn() != nil)
		require.Equal(t, was.state(), s.state())
		s.close()
	}
	s, err := open(t, fsys, was.clock, persistence.SyncAlways)
	require.NoError(t, err)
	require.NoError(t, s.handle.Put(0, []byte("later"), entry.String, nil, entry.NoExpiry))
	s.close()
	_, err = open(t, with(fsys, log, longer), was.clock, persistence.SyncAlways)
	require.ErrorContains(t, err, "there is something behind the end record")
	require.ErrorContains(t, err, log)
}
