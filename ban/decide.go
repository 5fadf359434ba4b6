package ban

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Plan is a decision and the change that it makes.
type Plan struct {
	// Decision has the answer. Refused is not 0 if the key is banned, and RetryAfter is then the rest of the ban. Limit
	// is the number of denials that start a ban, and Remaining the number of denials until then. ResetAfter is the time
	// until the key has no state any more.
	Decision limit.Decision
	// Stores says that the state changes. Expiry is then the instant at which the new state ends.
	Stores bool
	Expiry limit.Instant

	next state
}

// Append appends the state to store to dst.
func (p *Plan) Append(dst []byte) []byte { return p.next.append(dst) }

// Decide decides at now whether a key is banned, and fills in p. c must be valid. If denied is set, Decide counts a
// denial of the key. value must pass [Check], or be empty if the key has no state. The state changes at most c.Refusals
// times in a window, and does not change while the key is banned.
func Decide(value []byte, now limit.Instant, c *Call, denied bool, p *Plan) {
	s := decode(value)
	s.roll(c, now)
	p.Stores = false
	if denied && s.until <= now {
		if s.count == 0 {
			s.start = now
		}
		s.count++
		if p.Stores = true; int64(s.count) >= c.Refusals {
			length, grows := c.length(s.level)
			s.start, s.count, s.until = 0, 0, now.Add(length)
			if grows && s.level < maxLevel {
				s.level++
			}
		}
		p.Expiry, p.next = s.expiry(c), s
	}
	d := &p.Decision
	*d = limit.Decision{Limit: c.Refusals, Remaining: max(0, c.Refusals-int64(s.count)), RetryAfter: limit.NoRetry}
	if s.until > now {
		d.Refused, d.Remaining, d.RetryAfter = 1, 0, s.until.Sub(now)
	}
	if s.count > 0 || s.level > 0 || s.until > now {
		d.ResetAfter = max(0, s.expiry(c).Sub(now))
	}
}

// maxLevel is the maximum level.
const maxLevel = 1<<16 - 1

// Info describes the stored state of a key.
type Info struct {
	// Denials is the number of denials in the present window. Window is the age of the window.
	Denials int64
	Window  time.Duration
	// Level is the level at the end of the last ban. It falls after that.
	Level int64
	// Until is the instant at which the last ban ends.
	Until limit.Instant
}

// Describe returns the description of value at now. value must pass [Check].
func Describe(value []byte, now limit.Instant) (i Info) {
	s := decode(value)
	i = Info{Denials: int64(s.count), Level: int64(s.level), Until: s.until}
	if s.count > 0 {
		i.Window = max(0, now.Sub(s.start))
	}
	return i
}
