// Package headers makes the HTTP header fields and the body that tell a client about its limits.
//
// The fields RateLimit-Policy and RateLimit, and the problem types, follow draft-ietf-httpapi-ratelimit-headers-11 of
// 23 May 2026, which has expired on 24 November 2026 and is the newest draft. The drafts from -08 on have the same
// fields. X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset are the older names that many clients read.
//
// [Append] and [ProblemOf] are pure functions. The file clients/vectors/headers.json has answers and what the
// functions return for them, for implementations in other languages.
package headers

import "strconv"

// Style says which header fields an answer has. All styles but None include Retry-After.
type Style uint8

// These are the styles. Both has the fields of Draft and of X.
const (
	None  Style = 0
	Draft Style = 1
	X     Style = 2
	Both  Style = Draft | X
)

// Styles are the names of the styles in the option http-headers.
var Styles = []string{None: "none", Draft: "draft", X: "x", Both: "both"}

// Answer is the decision on a call under one policy. Times are in milliseconds and rounded up.
type Answer struct {
	// Policy is the name of the policy: see policy.CheckName. With any other name the fields are
	// invalid.
	Policy string `json:"policy"`
	// Denied says that the call is denied, and Blocked that it is denied by a block.
	Denied  bool `json:"denied"`
	Blocked bool `json:"blocked,omitempty"`
	// Binding is the clause whose numbers describe the call as a whole.
	Binding Clause `json:"binding"`
	// Clauses has the clauses of the limits that apply to the key, at least one, in their order.
	Clauses []Clause `json:"clauses"`
}

// Clause is the decision on one limit.
type Clause struct {
	// Denies says that the limit denies the call.
	Denies bool `json:"denies,omitempty"`
	// Limit and Remaining are numbers of units, at least 0.
	Limit     int64 `json:"limit"`
	Remaining int64 `json:"remaining"`
	// RetryMillis is the time in milliseconds until the call would pass. -1 means that waiting does not help: the call
	// has passed, or will never pass.
	RetryMillis int64 `json:"retryMillis"`
	// ResetMillis is the time in milliseconds until no unit is in use; 0 if none is in use, and -1
	// for never.
	ResetMillis int64 `json:"resetMillis"`
	// WindowMillis is the length of the window in milliseconds; 0 if the limit has no window, or a
	// window of the calendar.
	WindowMillis int64 `json:"windowMillis,omitempty"`
	// Concurrent says that the units are places of a concurrency limit.
	Concurrent bool `json:"concurrent,omitempty"`
	// Unlimited says that there is no limit. The other numbers have no meaning then, except for a denial by a block.
	Unlimited bool `json:"unlimited,omitempty"`
}

// Field is a header field. Its name is spelled as in the draft, and not in the canonical form of package http.
type Field struct {
	Name, Value string
}

// Append appends the fields for a to dst. A passed call and a denied one have the same fields, except Retry-After,
// which only a denied call has. Retry-After is not earlier than the instant at which the call would pass, nor than the
// end of any t in RateLimit. A call that never passes has no Retry-After.
//
// The items of the lists are named after the policy, from the second clause on with "#" and the number of the clause,
// which is in no name of a policy. For a clause that denies the call, t is the time until the call would pass. For
// other clauses it is the time until no unit is in use; it is left out if the call is denied, because it may be later
// than Retry-After. Numbers beyond the integers of structured fields become the largest of these.
func Append(dst []Field, a *Answer, s Style) []Field {
	if s == None {
		return dst
	}
	if s&Draft != 0 {
		dst = appendDraft(dst, a)
	}
	if s&X != 0 {
		dst = appendX(dst, a)
	}
	if seconds, ok := retryAfter(a); ok {
		dst = append(dst, Field{"Retry-After", strconv.FormatInt(seconds, 10)})
	}
	return dst
}

// room is the number of bytes that are enough for the fields of most answers.
const room = 96

// appendDraft appends RateLimit-Policy and RateLimit. A field without an item is left out, because a list in a
// field is not empty.
func appendDraft(dst []Field, a *Answer) []Field {
	policies, limits := make([]byte, 0, room), make([]byte, 0, room)
	for i := range a.Clauses {
		c := &a.Clauses[i]
		if !c.Unlimited {
			policies = appendParameter(appendItem(policies, a.Policy, i), "q", c.Limit)
			if c.Concurrent {
				policies = append(policies, `;qu="concurrent-requests"`...)
			}
			if c.WindowMillis > 0 {
				policies = appendParameter(policies, "w", secondsUp(c.WindowMillis))
			}
		}
		if !c.Unlimited || c.Denies {
			limits = appendParameter(appendItem(limits, a.Policy, i), "r", c.Remaining)
			if t := c.effective(a.Denied); t > 0 {
				limits = appendParameter(limits, "t", t)
			}
		}
	}
	if len(policies) > 0 {
		dst = append(dst, Field{"RateLimit-Policy", string(policies)})
	}
	if len(limits) > 0 {
		dst = append(dst, Field{"RateLimit", string(limits)})
	}
	return dst
}

// effective returns the parameter t of the clause, in seconds, or 0 if it has none. denied says that the call is
// denied.
func (c *Clause) effective(denied bool) int64 {
	switch {
	case !denied:
		return secondsUp(c.ResetMillis)
	case c.Denies:
		return secondsUp(c.RetryMillis)
	}
	return 0
}

// appendX appends X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, which is in seconds from now.
// They have the numbers of the binding clause. A passed call without a limit has none of them.
func appendX(dst []Field, a *Answer) []Field {
	c := &a.Binding
	if !c.Unlimited {
		dst = append(dst, Field{"X-RateLimit-Limit", strconv.FormatInt(c.Limit, 10)})
	}
	if c.Unlimited && !a.Denied {
		return dst
	}
	dst = append(dst, Field{"X-RateLimit-Remaining", strconv.FormatInt(c.Remaining, 10)})
	reset := c.ResetMillis
	if a.Denied {
		reset = c.RetryMillis
	}
	if reset >= 0 {
		dst = append(dst, Field{"X-RateLimit-Reset", strconv.FormatInt(secondsUp(reset), 10)})
	}
	return dst
}

// retryAfter returns Retry-After in seconds, at least 1. ok is false if the call was not denied or never passes.
func retryAfter(a *Answer) (seconds int64, ok bool) {
	if !a.Denied || a.Binding.RetryMillis < 0 {
		return 0, false
	}
	millis := a.Binding.RetryMillis
	for i := range a.Clauses {
		switch c := &a.Clauses[i]; {
		case !c.Denies:
		case c.RetryMillis < 0:
			return 0, false
		default:
			millis = max(millis, c.RetryMillis)
		}
	}
	return max(secondsUp(millis), 1), true
}

// appendItem appends the name of clause i, counted from 0, as an item of a list.
func appendItem(dst []byte, policy string, i int) []byte {
	if len(dst) > 0 {
		dst = append(dst, ", "...)
	}
	dst = append(dst, '"')
	dst = appendName(dst, policy, i)
	return append(dst, '"')
}

// appendName appends the name of clause i, counted from 0.
func appendName(dst []byte, policy string, i int) []byte {
	dst = append(dst, policy...)
	if i > 0 {
		dst = strconv.AppendInt(append(dst, '#'), int64(i+1), 10)
	}
	return dst
}

// maxInteger is the largest integer of structured fields (RFC 9651, section 3.3.1).
const maxInteger = 999_999_999_999_999

func appendParameter(dst []byte, name string, n int64) []byte {
	dst = append(append(append(dst, ';'), name...), '=')
	return strconv.AppendInt(dst, min(max(n, 0), maxInteger), 10)
}

// secondsUp returns a number of milliseconds as seconds, rounded up. It returns 0 for a negative number.
func secondsUp(millis int64) int64 {
	seconds := max(millis, 0) / 1000
	if millis > 0 && millis%1000 != 0 {
		seconds++
	}
	return seconds
}
