package rls

import (
	"errors"
	"math"
)

// These are the bounds of a request.
const (
	MaxDescriptors = 100
	MaxEntries     = 32
	// MaxHits is the maximum hits_addend.
	MaxHits = math.MaxInt64
)

// These are the errors of requests. ErrNoConfig, ErrNoDomain and ErrNoDescriptors have the texts of ratelimit, which
// answers them with the code UNKNOWN. All others stand for invalid arguments.
var (
	// ErrNoConfig says that no rules were loaded.
	ErrNoConfig = errors.New("no rate limit configuration loaded")
	// ErrNoDomain says that the request has no domain.
	ErrNoDomain = errors.New("rate limit domain must not be empty")
	// ErrNoDescriptors says that the request has no descriptor.
	ErrNoDescriptors = errors.New("rate limit descriptor list must not be empty")
	// ErrDescriptors says that there are more than MaxDescriptors descriptors.
	ErrDescriptors = errors.New("a request has at most 100 descriptors")
	// ErrEntries says that a descriptor has more than MaxEntries entries.
	ErrEntries = errors.New("a descriptor has at most 32 entries")
	// ErrHits says that a number of hits is more than MaxHits.
	ErrHits = errors.New("hits_addend must be less than 2^63")
	// ErrUnit says that the limit of a descriptor has no unit, or one that does not exist.
	ErrUnit = errors.New("the limit of a descriptor needs a unit: second, minute, hour, day, week, month or year")
)

// Invalid reports whether err says that a request has an invalid argument.
func Invalid(err error) bool {
	return errors.Is(err, ErrDescriptors) || errors.Is(err, ErrEntries) || errors.Is(err, ErrHits) || errors.Is(err, ErrUnit)
}

// Request is a RateLimitRequest. Its texts may be any bytes, and may refer to the message that they were decoded
// from, which then must not change as long as the [Plan] of the request is used.
type Request struct {
	Domain      []byte
	Descriptors []Descriptor
	// Hits is the field hits_addend; 0 stands for 1.
	Hits uint64
}

// Descriptor is a descriptor of a request.
type Descriptor struct {
	Entries []Entry
	// Own is the limit that replaces the limit in the file. It is used if HasOwn is true.
	Own    Own
	HasOwn bool
	// Hits is the field hits_addend of the descriptor, which may be 0. If HasHits is true, it replaces the field of the
	// request.
	Hits    uint64
	HasHits bool
}

// Entry is an entry of a descriptor.
type Entry struct{ Key, Value []byte }

// Own is a limit that comes with a request.
type Own struct {
	Requests uint32
	// Unit is the unit as a number in the message, which need not be valid.
	Unit int32
}

// unit returns the unit; 0 if it is not valid.
func (o *Own) unit() Unit {
	if o.Unit < 0 || o.Unit > math.MaxUint8 || !Unit(o.Unit).Valid() {
		return 0
	}
	return Unit(o.Unit)
}

// check returns an error of r, or nil.
func (r *Request) check() error {
	switch {
	case len(r.Domain) == 0:
		return ErrNoDomain
	case len(r.Descriptors) == 0:
		return ErrNoDescriptors
	case len(r.Descriptors) > MaxDescriptors:
		return ErrDescriptors
	case r.Hits > MaxHits:
		return ErrHits
	}
	for i := range r.Descriptors {
		switch d := &r.Descriptors[i]; {
		case len(d.Entries) > MaxEntries:
			return ErrEntries
		case d.HasHits && d.Hits > MaxHits:
			return ErrHits
		}
	}
	return nil
}

// hits returns the hits of descriptor i.
func (r *Request) hits(i int) int64 {
	if d := &r.Descriptors[i]; d.HasHits {
		return int64(d.Hits)
	}
	return int64(max(r.Hits, 1))
}
