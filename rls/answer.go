package rls

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Code is the code of an answer and of a status. The numbers are the same as of RateLimitResponse.Code in Envoy's API.
type Code uint8

// These are the codes.
const (
	OK        Code = 1
	OverLimit Code = 2
)

// Decision is the decision on a [Charge], in the terms that an answer needs.
type Decision struct {
	// Denied says that the call is denied, by its limits, a block or a ban.
	Denied bool
	// Over says that the call is over its limits. If Denied is false, the call passes all the same, because of an
	// exemption or SHADOW.
	Over bool
	// Limit is the limit that was used, and Remaining the number of units that are left of it.
	Limit, Remaining int64
	// Reset is the time until the window ends, or until the block does if the call is blocked. It is
	// [limit.NoRetry] for a block without an end. 0 stands for the end of the window of the rule's unit.
	Reset time.Duration
}

// Status is the part of an answer about one descriptor.
type Status struct {
	Code Code
	// Limited says that the status has a duration_until_reset and a current_limit, whose fields are Requests, Unit and
	// Name. Unit is 0 if the rule is unlimited and an override limits its key.
	Limited  bool
	Requests uint32
	Unit     Unit
	Name     string
	// Remaining is the field limit_remaining, in units.
	Remaining uint32
	// Reset is the field duration_until_reset in seconds: at least 1 if Limited is true, and
	// otherwise 0.
	Reset int64
}

// Answer is a RateLimitResponse. A front keeps an Answer for its requests, one after another.
type Answer struct {
	Overall  Code
	Statuses []Status
	// Header is the index of the status that the headers show, or -1 if there are none.
	Header int
	// Metadata is the field dynamic_metadata, or nil.
	Metadata Struct
}

// Field is a header field of an answer. Value may refer to the memory of the answer.
type Field struct {
	Name  string
	Value []byte
}

// forever is the number of seconds that an answer names for a block without an end: the longest
// unit.
const forever = 365 * 86400

// Answer sets a to the answer to the request of p. decisions are those on p.Charges, at the instant now.
func (p *Plan) Answer(o Options, decisions []Decision, now limit.Instant, a *Answer) {
	a.Statuses, a.Header, a.Metadata = a.Statuses[:0], -1, nil
	next := 0
	quotas, left, over := 0, false, false
	least := uint32(math.MaxUint32)
	for i := range p.subjects {
		s := &p.subjects[i]
		a.Statuses = append(a.Statuses, Status{Code: OK})
		status := &a.Statuses[i]
		if s.charges > 0 {
			s.status(decisions[next:next+s.charges], now, status)
			next += s.charges
		}
		isOver := status.Code == OverLimit
		if s.hasQuota(o) {
			quotas++
			left = left || !isOver
			isOver = false
		}
		over = over || isOver
		if o.Headers && status.Limited && (isOver || status.Remaining < least) {
			a.Header, least = i, status.Remaining
		}
	}
	a.Overall = OK
	if !o.Shadow && (over || quotas > 0 && !left) {
		a.Overall = OverLimit
	}
	if o.Metadata {
		a.Metadata = p.metadata(a.Statuses)
	}
}

// hasQuota reports whether the descriptor is a quota.
func (s *subject) hasQuota(o Options) bool { return o.Quota || s.rule != nil && s.rule.Quota }

// status sets the fields of status that the decisions on the charges of s determine.
func (s *subject) status(of []Decision, now limit.Instant, status *Status) {
	d := &of[0]
	lenient := d.Over && !d.Denied || s.rule != nil && s.rule.Shadow
	if d.Denied || isOver(of) && !lenient {
		status.Code = OverLimit
	}
	status.Remaining = clipped(d.Remaining)
	if s.unlimited(d) {
		return
	}
	status.Limited, status.Requests, status.Unit = true, clipped(d.Limit), s.unit
	if s.rule != nil {
		status.Unit, status.Name = s.rule.Limit.Unit, s.rule.Limit.Name
	}
	switch unit := status.Unit.Seconds(); {
	case d.Reset < 0:
		status.Reset = forever
	case d.Reset > 0:
		status.Reset = limit.SecondsUp(d.Reset)
	case unit > 0:
		status.Reset = unit - int64(now)/int64(time.Second)%unit
	default:
		status.Reset = 1
	}
}

// unlimited reports whether the rule of s has no limit, and d is a decision by it.
func (s *subject) unlimited(d *Decision) bool {
	return s.rule != nil && s.rule.Limit.Unlimited && !d.Denied && d.Limit == math.MaxUint32
}

// clipped returns n as a number of a message.
func clipped(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }
