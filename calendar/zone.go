package calendar

import "time"

// Zone is a time zone. It never changes and is safe for concurrent use. A nil *Zone is UTC.
type Zone struct {
	name  string
	rules *time.Location // the rules of the zone; nil for a zone with the offset 0
}

// Name returns the IANA name of the zone, such as Europe/Berlin, or "" for UTC. It has at most
// [MaxName] bytes.
func (z *Zone) Name() string {
	if z == nil {
		return ""
	}
	return z.name
}

// Missing reports whether the release does not have the zone, so that [Known] has given it the offset 0.
func (z *Zone) Missing() bool { return z != nil && z.rules == nil }

// ValidName reports whether b may be the name of a zone of some release, or is empty: it has at most
// [MaxName] bytes, which are letters, digits and the signs / _ - +.
func ValidName(b []byte) bool {
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '/', c == '_', c == '-', c == '+':
		default:
			return false
		}
	}
	return len(b) <= MaxName
}

// mostOffset is larger than any difference between local time and UTC, in seconds.
const mostOffset = 16 * 60 * 60

func (z *Zone) location() *time.Location {
	if z == nil || z.rules == nil {
		return time.UTC
	}
	return z.rules
}

// offset returns the seconds by which local time is ahead of UTC at a Unix time.
func (z *Zone) offset(unix int64) int64 {
	_, seconds := time.Unix(unix, 0).In(z.location()).Zone()
	return int64(seconds)
}

// unix returns the Unix time at which clocks show local, a number of seconds as if it were a time of
// UTC. If they show it twice, that is the first time. If they never show it, because they were
// advanced, unix returns the time at which they would show it if they had not been advanced.
//
// The zone must not change its offset twice within 32 hours. The search does not use
// [time.Time.ZoneBounds]: in zones with daylight saving its end is not after the instant on 31 December
// of leap years (Go 1.26).
func (z *Zone) unix(local int64) int64 {
	from, to := local-mostOffset, local+mostOffset
	before, after := z.offset(from), z.offset(to)
	if before == after {
		return local - before
	}
	for to-from > 1 { // binary search for the first second with the new offset
		if middle := (from + to) / 2; z.offset(middle) == before {
			from = middle
		} else {
			to = middle
		}
	}
	if local < to+max(before, after) {
		return local - before
	}
	return local - after
}
