package rules

import (
	"errors"
	"slices"
	"strconv"
	"time"
)

// Config has the parts of the limiter's configuration that each of its calls needs.
type Config struct {
	// Policy is the policy of RL.USE. If Limits has clauses, it is a name for them, with which the names of their keys
	// begin.
	Policy string
	Limits []Clause
	// Class and Keep are the options CLASS and KEEP of RL.USE. At most one of them is set.
	Class, Keep string
}

// Mode is the way in which a call takes units.
type Mode string

// These are the modes. Plain takes all units or none of them.
const (
	Plain   Mode = ""
	Peek    Mode = "PEEK"
	Partial Mode = "PARTIAL"
	Force   Mode = "FORCE"
)

// Request is one call.
type Request struct {
	Key  string
	Cost int64
	Mode Mode
	// Member is the argument of MEMBER; "" leaves it out.
	Member string
	// ID identifies the call, so that it counts once even if it is sent again; "" if it has no identity. If TTL is
	// positive, ID is the id of a reservation with this time to live, and otherwise the token of the option ID.
	ID  string
	TTL time.Duration
}

// Plain reports whether a denial of the request may be repeated from memory.
func (r *Request) Plain() bool { return r.Cost > 0 && r.Mode == Plain && r.TTL == 0 }

// ErrInline means that a call needs a policy. CLASS and KEEP always need one. PARTIAL and FORCE need one unless there
// is a single clause, which is TB or SW.
var ErrInline = errors.New("inline limits have no CLASS and KEEP, and PARTIAL and FORCE only with one clause that is TB or SW")

// Words returns the command of a call.
func (c *Config) Words(r Request) ([]string, error) {
	switch {
	case len(c.Limits) == 0:
		words := []string{"RL.USE", c.Policy, r.Key, strconv.FormatInt(r.Cost, 10)}
		if r.Mode != Plain {
			words = append(words, string(r.Mode))
		}
		if c.Class != "" {
			words = append(words, "CLASS", c.Class)
		}
		if c.Keep != "" {
			words = append(words, "KEEP", c.Keep)
		}
		return r.end(words, true), nil
	case c.Class != "" || c.Keep != "":
		return nil, ErrInline
	}
	only := c.Limits[0]
	if len(c.Limits) == 1 && (only.Family == Bucket || only.Family == Window) {
		words := []string{"TB.ACQUIRE"}
		if only.Family == Window {
			words[0] = "SW.ALLOW"
		}
		words = append(words, StateKey(c.Policy, r.Key, 1))
		words = append(words, only.words(only.Units(r.Cost))[1:]...)
		if r.Mode != Plain {
			words = append(words, string(r.Mode))
		}
		r.Member = ""
		return r.end(words, false), nil
	}
	if r.Mode != Plain && r.Mode != Peek {
		return nil, ErrInline
	}
	return r.several(c), nil
}

// several returns the words of the call as a command RL.MULTI.
func (r *Request) several(c *Config) []string {
	words := []string{"RL.MULTI", strconv.Itoa(len(c.Limits))}
	for i := range c.Limits {
		words = append(words, StateKey(c.Policy, r.Key, i+1))
	}
	for _, l := range c.Limits {
		words = append(words, l.words(l.Units(r.Cost))...)
	}
	// A lease has no units there: a call for none would take a place.
	if r.Mode == Peek || r.Cost == 0 && slices.ContainsFunc(c.Limits, func(l Clause) bool { return l.Family == Lease }) {
		words = append(words, string(Peek))
	}
	return r.end(words, true)
}

// end appends the options that all commands share.
func (r *Request) end(words []string, details bool) []string {
	if r.Member != "" {
		words = append(words, "MEMBER", r.Member)
	}
	switch {
	case r.ID == "":
	case r.TTL > 0:
		words = append(words, "RESERVE", r.ID, strconv.FormatInt(r.TTL.Milliseconds(), 10))
	default:
		words = append(words, "ID", r.ID)
	}
	words = append(words, "MS")
	if details {
		words = append(words, "WITHDETAILS")
	}
	return words
}

// StartKey is the key of the check at the start. It is an address, because policies with KEY IP
// need one.
const StartKey = "192.0.2.1"

// Start returns the command that checks the configuration: a call for no units, which creates no key. It is nil for inline
// limits, which need no policy.
func (c *Config) Start(member string) []string {
	if len(c.Limits) > 0 {
		return nil
	}
	words, err := c.Words(Request{Key: StartKey, Member: member})
	if err != nil {
		return nil
	}
	return words
}

// Settle returns the command that ends the reservation of r: RL.COMMIT with the units that were used, or RL.CANCEL if
// used is negative.
func (c *Config) Settle(r Request, used int64) []string {
	words := []string{"RL.CANCEL", c.settled(r.Key), r.ID}
	if used >= 0 {
		words[0] = "RL.COMMIT"
		words = append(words, c.committed(used)...)
	}
	return c.policied(words)
}

// committed returns the numbers of RL.COMMIT for used units: one for all clauses, or one for each inline clause that takes units,
// if one of them counts calls. The server does not know that of inline clauses, which have no word for it.
func (c *Config) committed(used int64) []string {
	if !slices.ContainsFunc(c.Limits, func(l Clause) bool { return l.Calls }) {
		return []string{strconv.FormatInt(used, 10)}
	}
	var numbers []string
	for _, l := range c.Limits {
		switch {
		case l.Family != Bucket && l.Family != Window:
		case l.Calls:
			numbers = append(numbers, "1") // the call has happened, whatever it has used
		default:
			numbers = append(numbers, strconv.FormatInt(used, 10))
		}
	}
	return numbers
}

// Renew returns the command that gives the reservation of r its time to live again.
func (c *Config) Renew(r Request) []string {
	return c.policied([]string{"RL.RENEW", c.settled(r.Key), r.ID, strconv.FormatInt(r.TTL.Milliseconds(), 10), "MS"})
}

// Reset returns the command that forgets what a key has used.
func (c *Config) Reset(key string) []string {
	if len(c.Limits) == 0 {
		return []string{"RL.RESET", c.Policy, key}
	}
	words := []string{"DEL"}
	for i := range c.Limits {
		words = append(words, StateKey(c.Policy, key, i+1))
	}
	return words
}

// settled returns the key that the settlement of a reservation names.
func (c *Config) settled(key string) string {
	if len(c.Limits) == 0 {
		return key
	}
	return StateKey(c.Policy, key, 1)
}

func (c *Config) policied(words []string) []string {
	if len(c.Limits) == 0 {
		words = append(words, "POLICY", c.Policy)
	}
	return words
}
