package descriptors

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/rls"
)

// Code is the result of a request in the counts.
type Code uint8

// These are the codes. The first two stand for answers, and the others for errors, with the meanings that gRPC gives
// them.
const (
	OK Code = iota
	OverLimit
	InvalidArgument
	PermissionDenied
	Unknown
	Unavailable
	codes
)

// names has the name of each code in the metrics.
var names = [codes]string{"ok", "over_limit", "invalid_argument", "permission_denied", "unknown", "unavailable"}

// String returns the name of c.
func (c Code) String() string { return names[c] }

// CodeOf returns the code for an error of [Service.Answer], or of opening its caller:
//
//	a fault of the request                  InvalidArgument
//	no rules, no domain, no descriptors     Unknown, as envoyproxy/ratelimit answers
//	NOPERM, DENIED, NOAUTH                  PermissionDenied
//	any other                               Unavailable
//
// After an error Envoy lets the request of its client pass, unless failure_mode_deny is set.
func CodeOf(err error) Code {
	switch {
	case rls.Invalid(err), errors.Is(err, ErrMessage), errors.Is(err, limitador.ErrCalls):
		return InvalidArgument
	case errors.Is(err, rls.ErrNoConfig), errors.Is(err, rls.ErrNoDomain), errors.Is(err, rls.ErrNoDescriptors):
		return Unknown
	}
	var reply resp.Error
	if errors.As(err, &reply) {
		switch reply.Word() {
		case "NOPERM", "DENIED", "NOAUTH":
			return PermissionDenied
		}
	}
	return Unavailable
}

// ErrMessage means that a message is not a request.
var ErrMessage = errors.New("the message is no request")

// maxDomains is the maximum number of domains that are counted by themselves.
const maxDomains = 100

// other is the domain in the counts of requests that have failed, whose domain has neither rules nor limits, or whose
// domain is beyond maxDomains.
const other = "other"

// Counts counts answers by domain and code. The zero Counts is ready for use. Any goroutine may call its methods.
type Counts struct {
	other   counters // counts for the domain other
	mu      sync.RWMutex
	domains map[string]*counters
}

// counters has a counter for each code.
type counters [codes]atomic.Int64

// Count is the number of answers to requests of a domain with a code.
type Count struct {
	Domain string
	Code   Code
	Calls  int64
}

// note counts the answer of s to the request of c; err is the error of the answer, or nil. A nil Counts counts nothing.
func (n *Counts) note(s *Service, c *Call, err error) {
	if n == nil {
		return
	}
	switch {
	case err != nil:
		n.other[CodeOf(err)].Add(1)
	case c.Answer.Overall == rls.OverLimit:
		n.of(s, c.Request.Domain)[OverLimit].Add(1)
	default:
		n.of(s, c.Request.Domain)[OK].Add(1)
	}
}

// Refused counts a message that is no request.
func (n *Counts) Refused() {
	if n != nil {
		n.other[InvalidArgument].Add(1)
	}
}

// of returns the counters of a domain.
func (n *Counts) of(s *Service, domain []byte) *counters {
	n.mu.RLock()
	is, full := n.domains[string(domain)], len(n.domains) == maxDomains
	n.mu.RUnlock()
	switch {
	case is != nil:
		return is
	case full || string(domain) == other || !s.has(domain):
		return &n.other
	}
	return n.add(string(domain))
}

// add returns the counters of a domain with rules. It creates them if there are fewer than
// maxDomains.
func (n *Counts) add(domain string) *counters {
	n.mu.Lock()
	defer n.mu.Unlock()
	is := n.domains[domain]
	switch {
	case is != nil:
		return is
	case len(n.domains) == maxDomains:
		return &n.other
	case n.domains == nil:
		n.domains = make(map[string]*counters)
	}
	is = new(counters)
	n.domains[domain] = is
	return is
}

// Snapshot returns the counts that are not 0, by domain and code. The domain other comes last.
func (n *Counts) Snapshot() (list []Count) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	add := func(domain string, of *counters) {
		for code := range codes {
			if calls := of[code].Load(); calls > 0 {
				list = append(list, Count{domain, code, calls})
			}
		}
	}
	for _, domain := range slices.Sorted(maps.Keys(n.domains)) {
		add(domain, n.domains[domain])
	}
	add(other, &n.other)
	return list
}
