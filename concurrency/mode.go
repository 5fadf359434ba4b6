package concurrency

import "fmt"

// Mode is the form of a stored value. The values of the constants are part of the file formats.
type Mode uint8

// These are the values of [Mode]. None is the mode of an absent key. Leases is the mode of a set in
// which every member has one place. Places is the mode of a set whose members may have several; the
// package comment says when a set has it.
const (
	None   Mode = 0
	Leases Mode = 1
	Places Mode = 2
)

// String returns the name of the mode in lower case, as OBJECT ENCODING shows it.
func (m Mode) String() string {
	switch m {
	case None:
		return "none"
	case Leases:
		return "leases"
	case Places:
		return "places"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}
