// Package fields makes the HTTP header fields and the body that tell a client about its limits.
//
// It makes what the package front/headers of the server makes; both are tested with clients/vectors/headers.json. The
// fields follow draft-ietf-httpapi-ratelimit-headers-11 of 23 May 2026.
package fields

import "strconv"

// Style says which header fields a response has. All styles but None include Retry-After.
type Style uint8

// These are the styles. Both has the fields of Draft and of X.
const (
	None  Style = 0
	Draft Style = 1
	X     Style = 2
	Both  Style = Draft | X
)

// Answer is the decision on a request. Times are in milliseconds; -1 means that there is none.
type Answer struct {
	Policy string `json:"policy"`
	// Denied says that the request is denied, and Blocked that it is denied by a block.
	Denied  bool `json:"denied"`
	Blocked bool `json:"blocked"`
	// Binding has the numbers of the call as a whole, and Clauses the numbers of each clause.
	Binding Clause   `json:"binding"`
	Clauses []Clause `json:"clauses"`
}

// Clause is the decision on one limit.
type Clause struct {
	// Denies says that this limit denies the request.
	Denies      bool  `json:"denies"`
	Limit       int64 `json:"limit"`
	Remaining   int64 `json:"remaining"`
	RetryMillis int64 `json:"retryMillis"`
	ResetMillis int64 `json:"resetMillis"`
	// WindowMillis is the length of the window in milliseconds; 0 if there is none or it is not
	// known.
	WindowMillis int64 `json:"windowMillis"`
	// Concurrent says that the units are places, and Unlimited that there is no limit.
	Concurrent bool `json:"concurrent"`
	Unlimited  bool `json:"unlimited"`
}

// Field is a header field of a response.
type Field struct{ Name, Value string }

// These are the names of the header fields, spelled as in the draft.
const (
	Policy     = "RateLimit-Policy"
	Limit      = "RateLimit"
	RetryAfter = "Retry-After"
)

// Append appends the fields for a to dst. t of a clause that denies the request is the time until it would pass, and
// otherwise the time until no unit is in use; this time is left out if the request is denied. Retry-After is the
// longest wait in whole seconds, at least 1, and left out if the request never passes.
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
		dst = append(dst, Field{RetryAfter, strconv.FormatInt(seconds, 10)})
	}
	return dst
}

// appendDraft appends RateLimit-Policy and RateLimit, each only if it has an item.
func appendDraft(dst []Field, a *Answer) []Field {
	var policies, limits []byte
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
		dst = append(dst, Field{Policy, string(policies)})
	}
	if len(limits) > 0 {
		dst = append(dst, Field{Limit, string(limits)})
	}
	return dst
}

// effective returns t of a clause in seconds, or 0 if it has none.
func (c *Clause) effective(denied bool) int64 {
	switch {
	case !denied:
		return secondsUp(c.ResetMillis)
	case c.Denies:
		return secondsUp(c.RetryMillis)
	}
	return 0
}

// appendX appends the older X-RateLimit fields, with the numbers of the call as a whole.
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

// retryAfter returns Retry-After. ok is false if there is none.
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
	return append(append(append(dst, '"'), name(policy, i)...), '"')
}

// name returns the name of clause i, counted from 0.
func name(policy string, i int) string {
	if i == 0 {
		return policy
	}
	return policy + "#" + strconv.Itoa(i+1)
}

// maxInteger is the largest integer of structured fields (RFC 9651, section 3.3.1).
const maxInteger = 999_999_999_999_999

func appendParameter(dst []byte, name string, n int64) []byte {
	dst = append(append(append(dst, ';'), name...), '=')
	return strconv.AppendInt(dst, min(max(n, 0), maxInteger), 10)
}

// secondsUp returns a number of milliseconds as seconds, rounded up, and 0 for a negative number.
func secondsUp(millis int64) int64 {
	seconds := max(millis, 0) / 1000
	if millis > 0 && millis%1000 != 0 {
		seconds++
	}
	return seconds
}

// Problem is the body of a denied request's response, of the type application/problem+json (RFC
// 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail explains the problem. Violated has the names of the clauses that deny the request.
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

// ProblemType is the media type of a [Problem].
const ProblemType = "application/problem+json"

// ProblemOf returns the problem of a denied request, for a response with the given status.
func ProblemOf(a *Answer, status int) Problem {
	const types = "https://iana.org/assignments/http-problem-types#"
	if a.Blocked {
		return Problem{
			Type: types + "abnormal-usage-detected", Title: "Request not satisfied due to detection of abnormal request pattern",
			Status: status, Violated: []string{a.Policy},
		}
	}
	p := Problem{Type: types + "quota-exceeded", Title: "Request cannot be satisfied as assigned quota has been exceeded", Status: status}
	for i := range a.Clauses {
		if a.Clauses[i].Denies {
			p.Violated = append(p.Violated, name(a.Policy, i))
		}
	}
	return p
}
