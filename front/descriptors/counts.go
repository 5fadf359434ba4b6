package descriptors

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/front/use"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/transport/direct"
)

// Code says how a request was answered.
type Code uint8

// These are the codes. The first two are those of answers, the others those of errors, with the meanings that gRPC gives
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

// names has the names of the codes, as metrics show them.
var names = [codes]string{"ok", "over_limit", "invalid_argument", "permission_denied", "unknown", "unavailable"}

// String returns the name of c.
func (c Code) String() string { return names[c] }

// CodeOf returns the code for an error of [Service.Answer], or of opening its caller:
//
//	a fault of the request                  InvalidArgument
//	no rules, no domain, no descriptors     Unknown, as envoyproxy/ratelimit answers
//	NOPERM, DENIED, NOAUTH, an unknown user PermissionDenied
//	any other                               Unavailable
//
// After an error Envoy lets the request of its client pass, unless failure_mode_deny is set.
func CodeOf(err error) Code {
	switch {
	case rls.Invalid(err), errors.Is(err, ErrMessage):
		return InvalidArgument
	case errors.Is(err, rls.ErrNoConfig), errors.Is(err, rls.ErrNoDomain), errors.Is(err, rls.ErrNoDescriptors):
		return Unknown
	case errors.Is(err, direct.ErrUser):
		return PermissionDenied
	}
	var (
		reply   use.Refusal
		refusal direct.Refusal
	)
	if errors.As(err, &reply) || errors.As(err, &refusal) {
		word, _, _ := strings.Cut(cmp.Or(string(reply), string(refusal)), " ")
		switch word {
		case "NOPERM", "DENIED", "NOAUTH":
			return PermissionDenied
		}
	}
	return Unavailable
}

// ErrMessage says that a message is no request.
var ErrMessage = errors.New("the message is no request")

// maxDomains is the maximum number of domains that are counted by themselves.
const maxDomains = 100

// other is the domain of requests whose domain has no rules, of those beyond maxDomains, and of requests that have failed.
const other = "other"

// Counts counts answers by domain and code. The zero Counts is ready for use. Any goroutine may call its methods.
type Counts struct {
	mu      sync.RWMutex
	domains map[string]*[codes]atomic.Int64
}

// Count is the number of answers to requests of a domain with a code.
type Count struct {
	Domain string
	Code   Code
	Calls  int64
}

// note counts the answer of s to the request of c, which has come to err. Without a receiver it does nothing.
func (n *Counts) note(s *Service, c *Call, err error) {
	if n == nil {
		return
	}
	switch {
	case err != nil:
		n.add(other)[CodeOf(err)].Add(1)
	case c.Answer.Overall == rls.OverLimit:
		n.of(s, c.Request.Domain)[OverLimit].Add(1)
	default:
		n.of(s, c.Request.Domain)[OK].Add(1)
	}
}

// Refused counts a message that is no request.
func (n *Counts) Refused() {
	if n != nil {
		n.add(other)[InvalidArgument].Add(1)
	}
}

// of returns the counters of a domain.
func (n *Counts) of(s *Service, domain []byte) *[codes]atomic.Int64 {
	n.mu.RLock()
	is := n.domains[string(domain)]
	n.mu.RUnlock()
	switch {
	case is != nil:
		return is
	case !s.Rules().Has(domain):
		return n.add(other)
	}
	return n.add(string(domain))
}

// add returns the counters of a domain, which get a place if there is one.
func (n *Counts) add(domain string) *[codes]atomic.Int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.domains == nil {
		n.domains = map[string]*[codes]atomic.Int64{other: new([codes]atomic.Int64)}
	}
	is := n.domains[domain]
	switch {
	case is != nil:
		return is
	case len(n.domains) > maxDomains:
		return n.domains[other]
	}
	is = new([codes]atomic.Int64)
	n.domains[domain] = is
	return is
}

// Snapshot returns the counts that are not 0, by domain and code.
func (n *Counts) Snapshot() (list []Count) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, domain := range slices.Sorted(maps.Keys(n.domains)) {
		for code := range codes {
			if calls := n.domains[domain][code].Load(); calls > 0 {
				list = append(list, Count{domain, code, calls})
			}
		}
	}
	return list
}
