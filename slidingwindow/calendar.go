package slidingwindow

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/calendar"
)

// checkCalendar reports whether value is valid under the mode Calendar. The zone may be one that the
// program does not know, because a program with another release of tzdata may have stored it.
func checkCalendar(value []byte) bool {
	if len(value) < fixedSize+ruleSize || len(value) > fixedSize+ruleSize+calendar.MaxName ||
		!windowOK(value, 1) || getInt(value, 2) < 0 {
		return false
	}
	rule := value[fixedSize:]
	r := calendar.Rule{Unit: calendar.Unit(rule[0]), From: binary.LittleEndian.Uint16(rule[1:])}
	return r.Valid() && calendar.ValidName(rule[ruleSize:])
}

// encodeRule writes r to b, which has the length for it.
func encodeRule(b []byte, r *calendar.Rule) {
	b[0] = byte(r.Unit)
	binary.LittleEndian.PutUint16(b[1:], r.From)
	copy(b[ruleSize:], r.Zone.Name())
}

// sameRule reports whether b is the encoded rule r.
func sameRule(b []byte, r *calendar.Rule) bool {
	return calendar.Unit(b[0]) == r.Unit && binary.LittleEndian.Uint16(b[1:]) == r.From && string(b[ruleSize:]) == r.Zone.Name()
}

// decodeRule returns the encoded rule b. If the program does not know the zone of the rule, its windows are in UTC.
func decodeRule(b []byte) calendar.Rule {
	return calendar.Rule{
		Unit: calendar.Unit(b[0]), From: binary.LittleEndian.Uint16(b[1:]), Zone: calendar.Known(string(b[ruleSize:])),
	}
}

// RuleOf returns the rule of a value of the mode Calendar as words of a clause, such as "MONTH ZONE
// Europe/Berlin FROM 15". value must pass [Check].
func RuleOf(value []byte) string {
	r := decodeRule(value[fixedSize:])
	return r.String()
}

// Follows reports whether value, of the mode Calendar, has the windows of r. value must pass [Check].
func Follows(value []byte, r *calendar.Rule) bool { return sameRule(value[fixedSize:], r) }
