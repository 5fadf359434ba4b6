package calendar

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseUnit returns the unit with the given name, in upper or lower case, or None.
func ParseUnit(word []byte) Unit {
	if len(word) == 0 || word[0] < 'A' {
		return None // most texts are a number of seconds
	}
	for u := Day; u <= Year; u++ {
		if strings.EqualFold(string(word), unitNames[u]) {
			return u
		}
	}
	return None
}

// First returns the From of a rule without one: midnight, Monday, the first of the month or 1 January.
func (u Unit) First() uint16 {
	switch u {
	case Week, Month:
		return 1
	case Year:
		return 101
	}
	return 0
}

// FromForm returns how FROM is written for the unit, for errors.
func (u Unit) FromForm() string {
	switch u {
	case Day:
		return "a time such as 06:30, from 00:00 to 23:59"
	case Week:
		return "a day of the week from 1, a Monday, to 7"
	case Month:
		return "a day of the month from 1 to 31"
	case Year:
		return "a month and a day such as 04-06"
	}
	return ""
}

// ParseFrom returns the From of a rule of the unit that text stands for: hh:mm for Day, a number from 1
// to 7 for Week, a number from 1 to 31 for Month, and mm-dd for Year. ok is false for any other text.
func (u Unit) ParseFrom(text []byte) (from uint16, ok bool) {
	r := Rule{Unit: u}
	switch u {
	case Day:
		hour, minute, ok := pair(text, ':')
		if !ok || hour > 23 || minute > 59 {
			return 0, false
		}
		return hour*60 + minute, true
	case Week, Month:
		n, err := strconv.ParseUint(string(text), 10, 8)
		if err != nil || strconv.FormatUint(n, 10) != string(text) {
			return 0, false
		}
		r.From = uint16(n)
	case Year:
		month, day, ok := pair(text, '-')
		if !ok {
			return 0, false
		}
		r.From = month*100 + day
	}
	return r.From, r.Valid()
}

// pair returns the two numbers of text, which has two digits, the byte between and two digits.
func pair(text []byte, between byte) (a, b uint16, ok bool) {
	if len(text) != 5 || text[2] != between {
		return 0, 0, false
	}
	for _, i := range [...]int{0, 1, 3, 4} {
		if text[i] < '0' || text[i] > '9' {
			return 0, 0, false
		}
	}
	digits := func(i int) uint16 { return uint16(text[i]-'0')*10 + uint16(text[i+1]-'0') }
	return digits(0), digits(3), true
}

// String returns the rule as words of a clause, such as "MONTH ZONE Europe/Berlin FROM 15". UTC and
// the From of [Unit.First] are left out. r must be valid.
func (r *Rule) String() string {
	text := r.Unit.String()
	if name := r.Zone.Name(); name != "" {
		text += " ZONE " + name
	}
	if r.From == r.Unit.First() {
		return text
	}
	text += " FROM "
	switch r.Unit {
	case Day:
		return text + fmt.Sprintf("%02d:%02d", r.From/60, r.From%60)
	case Year:
		return text + fmt.Sprintf("%02d-%02d", r.From/100, r.From%100)
	}
	return text + strconv.Itoa(int(r.From))
}
