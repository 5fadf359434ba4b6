package persistence

import (
	"encoding/binary"
	"errors"
)

// Origin is where the state of a replica comes from: the offset in the history of the primary at an
// address. After a restart the replica asks for what follows.
type Origin struct {
	History string // 40 hexadecimal digits
	Offset  uint64 // below 2^62
	Primary string // host:port, of at most 512 bytes
}

const (
	// HistoryLength is the length of the id of a history, in hexadecimal digits.
	HistoryLength = 40
	// OffsetBits bounds the offset at which a history may begin, far below the limits of the
	// numbers in INFO and PSYNC.
	OffsetBits = 62
	// originHead is the length of the body of an origin record before the address.
	originHead   = 8 + HistoryLength
	longestPlace = 512
)

// errOrigin is the error for an origin that no replica can have.
var errOrigin = errors.New("an origin record that is out of form")

func (o *Origin) check() error {
	if !IsHistory(o.History) || o.Offset >= 1<<OffsetBits || len(o.Primary) > longestPlace {
		return errOrigin
	}
	return nil
}

// IsHistory reports whether s has the form of the id of a history.
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

func appendOrigin(dst []byte, o *Origin) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, o.Offset)
	return append(append(dst, o.History...), o.Primary...)
}

// parseOrigin reads the body of an origin record.
func parseOrigin(body []byte) (*Origin, error) {
	if len(body) < originHead {
		return nil, errOrigin
	}
	o := &Origin{
		Offset: binary.LittleEndian.Uint64(body), History: string(body[8:originHead]), Primary: string(body[originHead:]),
	}
	return o, o.check()
}
