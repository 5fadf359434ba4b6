package slidingwindow

import "fmt"

// Mode is the form of a stored value. The values of the constants are part of the file formats.
type Mode uint8

// These are the values of [Mode]. None is the mode of an absent key.
const (
	None    Mode = 0
	Counter Mode = 1
	Fixed   Mode = 2
	Log     Mode = 3
	Buckets Mode = 4
	// Calendar is FIXED with windows that follow a calendar.
	Calendar Mode = 5
)

// String returns the name of the mode in lower case, as OBJECT ENCODING shows it.
func (m Mode) String() string {
	switch m {
	case None:
		return "none"
	case Counter:
		return "counter"
	case Fixed:
		return "fixed"
	case Log:
		return "log"
	case Buckets:
		return "buckets"
	case Calendar:
		return "calendar"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}
