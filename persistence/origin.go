package persistence

import (
	"encoding/binary"
	"errors"
)

// Origin describes where the state of a replica comes from: an offset in a replication history, and
// the primary that had it. After a restart the replica asks the primary for what follows the
// offset.
type Origin struct {
	History string // id of the history, of 40 hexadecimal digits
	Offset  uint64 // offset in the history in bytes; below 2^62
	Primary string // address of the primary as host:port, at most 512 bytes
}

const (
	// HistoryLength is the number of hexadecimal digits of the id of a history.
	HistoryLength = 40
	// OffsetBits is the number of bits of the largest offset in an origin. It keeps offsets far
	// below the limits of the numbers in INFO and PSYNC.
	OffsetBits = 62
	// originHead is the length of the body of an origin record before the address.
	originHead   = 8 + HistoryLength
	longestPlace = 512 // maximum length of Origin.Primary in bytes
)

// errOrigin is the error for an origin with a field that is not valid.
var errOrigin = errors.New("an origin record that is out of form")

// check returns errOrigin if a field of o is out of range.
func (o *Origin) check() error {
	if !IsHistory(o.History) || o.Offset >= 1<<OffsetBits || len(o.Primary) > longestPlace {
		return errOrigin
	}
	return nil
}

// IsHistory reports whether s has the form of the id of a history: [HistoryLength] lower-case
// hexadecimal digits.
func IsHistory(s string) bool {
	if len(s) != HistoryLength {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// appendOrigin appends the body of the origin record of o to dst.
func appendOrigin(dst []byte, o *Origin) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, o.Offset)
	return append(append(dst, o.History...), o.Primary...)
}

// parseOrigin returns the origin in the body of an origin record, or errOrigin.
func parseOrigin(body []byte) (*Origin, error) {
	if len(body) < originHead {
		return nil, errOrigin
	}
	o := &Origin{
		Offset: binary.LittleEndian.Uint64(body), History: string(body[8:originHead]), Primary: string(body[originHead:]),
	}
	return o, o.check()
}
