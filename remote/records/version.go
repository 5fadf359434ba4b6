package records

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Version names a state of all records. The zero Version is the state before the first change.
type Version struct {
	// Number counts the changes, from 1. After a failover in which the engine has lost changes, the
	// count continues from the last change that is left.
	Number uint64
	// ID is the random number of the change. It distinguishes changes with the same Number. It is 0
	// only in the zero Version.
	ID uint64
}

// maxNumber is the maximum number of a version. A script counts with float64, which is exact up to
// 2^53.
const maxNumber = 1<<53 - 2

var errVersion = errors.New("a version is a number and an id of 16 hexadecimal digits")

// String returns the number and the id, as in the record of the version, and "" for the zero
// Version.
func (v Version) String() string {
	if v == (Version{}) {
		return ""
	}
	return fmt.Sprintf("%d %016x", v.Number, v.ID)
}

// id returns the ID of v as 16 hexadecimal digits.
func (v Version) id() string { return fmt.Sprintf("%016x", v.ID) }

// ParseVersion returns the version that [Version.String] has written as text.
func ParseVersion(text string) (Version, error) {
	if text == "" {
		return Version{}, nil
	}
	number, id, _ := strings.Cut(text, " ")
	v := Version{}
	var err error
	if v.Number, err = strconv.ParseUint(number, 10, 64); err != nil || v.Number == 0 || v.Number > maxNumber {
		return Version{}, errVersion
	}
	if v.ID, err = parseID(id); err != nil || v.ID == 0 || v.String() != text {
		return Version{}, errVersion
	}
	return v, nil
}

// parseID returns the number of an id, which has 16 hexadecimal digits in lower case.
func parseID(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil || len(text) != idLength || fmt.Sprintf("%016x", id) != text {
		return 0, errVersion
	}
	return id, nil
}

// idLength is the length of an id in bytes.
const idLength = 16
