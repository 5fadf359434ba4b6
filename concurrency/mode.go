package concurrency

import "fmt"

// Mode is the kind of a stored value. The values of the constants are part of the file formats.
type Mode uint8

// These are the values of [Mode]. None is the mode of an absent key, and Leases is the mode of a
// set.
const (
	None   Mode = 0
	Leases Mode = 1
)

// String returns the name of the mode in lower case, as OBJECT ENCODING shows it.
func (m Mode) String() string {
	switch m {
	case None:
		return "none"
	case Leases:
		return "leases"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}
