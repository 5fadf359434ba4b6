package persistence_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
)

// resealed returns a valid file with the given payloads as records, each preceded by its length in
// two bytes. It has right checksums, so the loader gets payloads that a checksum would reject
// otherwise.
func resealed(whole, payloads []byte) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	out, seq := bytes.Clone(whole[:persistence.HeaderSize]), uint64(0)
	for len(payloads) >= 3 {
		n := min(1+int(binary.LittleEndian.Uint16(payloads)), len(payloads)-2)
		payload := payloads[2 : 2+n]
		payloads = payloads[2+n:]
		seq++
		head := binary.LittleEndian.AppendUint64(bytes.Clone(whole[16:24]), seq)
		head = binary.LittleEndian.AppendUint32(head, uint32(n))
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
		out = binary.LittleEndian.AppendUint32(out, crc32.Update(crc32.Checksum(head, table), table, payload))
		out = append(out, payload...)
	}
	return out
}

// unsealed returns the payloads of a file as input for resealed.
func unsealed(whole []byte) (payloads []byte) {
	for rest := whole[persistence.HeaderSize:]; len(rest) > 8; {
		n := int(binary.LittleEndian.Uint32(rest))
		payloads = binary.LittleEndian.AppendUint16(payloads, uint16(n-1))
		payloads = append(payloads, rest[8:8+n]...)
		rest = rest[8+n:]
	}
	return payloads
}

// fuzzSealed replaces the records of a file by any records with right checksums. check-aof, dump
// and a server must end, and a server loads every file in which check-aof finds no error, or which
// it has repaired.
func fuzzSealed(f *testing.F, suffix string) {
	fsys, _, _ := closed(f)
	name := ""
	for _, n := range fsys.Names() {
		if strings.HasSuffix(n, suffix) && (name == "" || n == logFile(fsys)) {
			name = n
		}
	}
	whole := fsys.Content(name)
	require.Equal(f, whole, resealed(whole, unsealed(whole)))
	f.Add(unsealed(whole))
	f.Add(unsealed(whole)[:len(whole)/3])
	f.Fuzz(func(t *testing.T, payloads []byte) {
		broken := with(fsys, name, resealed(whole, payloads))
		_ = persistence.Dump(broken, "data", io.Discard)
		clock := clocktest.New(limit.Instant(time.Now().UnixNano())) // as check-aof's
		loads := func(fsys *faultfs.FS) error {
			dir, err := persistence.Open(options(fsys, clock))
			if err != nil {
				return err
			}
			ks := keyspace.New(keyspace.Options{Clock: clock})
			defer ks.Close()
			if err := dir.Load(ks, &persistence.Progress{}); err != nil {
				return err
			}
			_, err = dir.Start(persistence.LogOptions{})
			require.NoError(t, err)
			require.NoError(t, dir.Close())
			return nil
		}
		found := persistence.Check(broken, "data", false, io.Discard)
		loaded := loads(broken.Kill())
		require.Equal(t, found == nil, loaded == nil, "check-aof: %v, a server: %v", found, loaded)
		if persistence.Check(broken, "data", true, io.Discard) == nil {
			require.NoError(t, loads(broken))
		}
	})
}

func FuzzSealedIncrement(f *testing.F) { fuzzSealed(f, ".log") }

func FuzzSealedSnapshot(f *testing.F) { fuzzSealed(f, ".snap") }
