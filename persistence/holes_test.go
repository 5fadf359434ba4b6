package persistence_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
)

// stretch returns the record of a patch that extends the list key from 0 to n without adding
// values, and sets its expiry.
func stretch(key string, n int, expiry limit.Instant) []byte {
	record := append([]byte{66, 0, byte(len(key))}, key...)
	record = append(record, byte(entry.List))
	record = binary.LittleEndian.AppendUint64(record, uint64(expiry))
	record = append(record, 17, 1)
	record = binary.LittleEndian.AppendUint64(record, 0)
	return binary.LittleEndian.AppendUint64(record, uint64(n))
}

// A log with right checksums that leaves a list without values is refused, whatever the length of
// the list. It is loaded if the list expires before a client can see it, as happens when the log is
// replayed over a newer base.
func TestNoListWithHolesIsLoaded(t *testing.T) {
	for _, n := range []int{1, 3, 64, 65, 1 << 20} {
		for name, c := range map[string]struct {
			expiry  limit.Instant
			after   func(v *keyspace.Handle)
			refused bool
		}{
			"alive":   {expiry: entry.NoExpiry, refused: true},
			"expired": {expiry: begin - 1},
			"deleted": {expiry: entry.NoExpiry, after: func(v *keyspace.Handle) {
				_ = v.Put(0, []byte("list"), entry.String, nil, entry.NoExpiry)
				v.Delete(0, []byte("list"))
			}},
			"replaced": {expiry: entry.NoExpiry, after: func(v *keyspace.Handle) {
				_ = v.Put(0, []byte("list"), entry.String, nil, entry.NoExpiry)
			}},
			"flushed": {expiry: entry.NoExpiry, after: func(v *keyspace.Handle) { v.FlushAll() }},
		} {
			s := mustOpen(t, faultfs.New(), persistence.SyncNo)
			s.log.Append(stretch("list", n, c.expiry), nil, begin)
			if c.after != nil {
				c.after(s.handle)
			}
			s.close()
			s.clock.Advance(time.Second)
			_, err := open(t, s.fs, s.clock, persistence.SyncNo)
			if c.refused {
				require.ErrorContains(t, err, "a list of database 0 lacks values", "%s, %d", name, n)
			} else {
				require.NoError(t, err, "%s, %d", name, n)
			}
		}
	}
}
