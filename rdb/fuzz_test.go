package rdb_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/rdb"
)

// FuzzRead reads arbitrary bytes. The reader does not panic, and allocates at most 176 bytes for each
// byte of input, plus 1 MiB. A file that is read without an error gives the same values when its
// checksum is removed.
func FuzzRead(f *testing.F) {
	for _, e := range encodings {
		f.Add(sealed(e.head, e.code, "\x01k", e.body, "\x00\x01l\x01v"))
	}
	f.Add(sealed("REDIS0013", "\xf7"+moduleID+"\x02\x02"+everyModuleOpcode, "\xf3\x02META\x02\x07\x00TWOS\x00\x00\x01k\x01v"))
	f.Add(sealed("VALKEY080", "\xf3\x03job\x02\x00\x05\x07\x09\x00\x01k\x01v"))
	f.Add(sealed("REDIS0009", "\xfa\x01a\x01b\xfb\x01\x00\xfc"+little(8, 5)+"\xf8\x05\xf9\x05\x00\x01k\xc3\x0a\x14\x00a\xe0\x08\x00\x00a\xe0\x00\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var s seen
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := bufio.NewReader(bytes.NewReader(in))
		err := rdb.NewReader(r, rdb.Limits{}).Read(&rdb.Visitor{Value: func(*rdb.Key, rdb.Part) error { return nil }})
		runtime.ReadMemStats(&after)
		// A compressed string may be 88 times as long as its input, and is read once.
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, 2*88*uint64(len(in))+1<<20)
		if err != nil {
			return
		}
		require.NoError(t, readInto(in, s.visitor(t), rdb.Limits{}))
		// Without a checksum the result is the same.
		if end := len(in) - r.Buffered(); end >= 17 {
			bare := append(bytes.Clone(in[:end-8]), binary.LittleEndian.AppendUint64(nil, 0)...)
			var again seen
			require.NoError(t, readInto(bare, again.visitor(t), rdb.Limits{}))
			require.Equal(t, s, again)
		}
	})
}
