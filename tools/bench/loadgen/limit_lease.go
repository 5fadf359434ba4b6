package loadgen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/limit"
)

// leaseLimit parses the arguments of CC.ACQUIRE after the key. If every member is new, all members
// that were granted a lease within its length hold it at the same time, so there are no more of
// them than the limit. There is no spell: leases of an earlier run may be longer, so a refusal
// proves nothing.
func leaseLimit(r *callReader) (*Limit, error) {
	var most, lease int64
	if err := r.numbers(&most, &lease); err != nil {
		return nil, err
	}
	member, unit := "", r.period()
	if len(r.words) > 0 {
		member, r.words = r.words[0], r.words[1:]
	}
	l := &Limit{Most: most}
	for word := r.word(); word != ""; word = r.word() {
		switch word {
		case "MS":
			unit = time.Millisecond
		case "PEEK":
			l.free = true
		case "BLOCK":
			if _, err := strconv.ParseFloat(r.word(), 64); err != nil {
				return nil, errNotALimit
			}
		default:
			return nil, errNotALimit
		}
	}
	call := concurrency.Call{Op: concurrency.Acquire, Member: []byte(member), Limit: most, Lease: units(lease, unit)}
	if member == "" || call.Limit < 1 || call.Validate() != nil {
		return nil, errNotALimit
	}
	l.Name = fmt.Sprintf("leases, %d at once for %v", most, call.Lease)
	if !strings.Contains(member, "{seq}") {
		l.unbounded = "a member that comes again is never refused"
		return l, nil
	}
	l.bound = func(span time.Duration) int64 { return limit.SatMul(most, int64(span/call.Lease)+1) }
	return l, nil
}
