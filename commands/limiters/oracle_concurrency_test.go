package limiters

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// TestLeasesRecorded replays the recorded replies of an exact model of CC.ACQUIRE,
// CC.RELEASE and CC.RENEW through parse, decide, apply and a map.
func TestLeasesRecorded(t *testing.T) {
	steps := 0
	for _, name := range []string{"cc", "cc-decided"} {
		for _, scenario := range readRecorded(t, "limiters/"+name+".jsonl.gz") {
			store := leaseStore{}
			for i, step := range scenario.steps {
				steps++
				if got := store.run(step.at, step.args); !step.matches(got) {
					t.Errorf("%s: %s step %d: %q\n got %v\nwant %v", name, scenario.name, i, step.args, got, step.want)
				}
			}
		}
	}
	require.Equal(t, 16527+4156, steps)
}

// leaseStore is a minimal store for the recorded scenarios.
type leaseStore map[string]*leaseEntry

type leaseEntry struct {
	mode   concurrency.Mode
	value  []byte
	expiry limit.Instant
}

func (s leaseStore) run(now limit.Instant, args [][]byte) any {
	for key, e := range s {
		if e.expiry <= now {
			delete(s, key)
		}
	}
	name, args := strings.ToUpper(string(args[0])), args[1:]
	if strings.HasPrefix(name, "CC.") {
		return s.lease(now, name, args)
	}
	key := string(args[0])
	if e := s[key]; e != nil {
		switch name {
		case "EXISTS":
			return int64(1)
		case "TYPE":
			return "ratelimit"
		case "PTTL":
			return limit.MillisUp(e.expiry.Sub(now))
		case "DEL":
			delete(s, key)
			return int64(1)
		}
		return resp.ErrWrongType // GET, LPUSH and commands of other families
	}
	switch name {
	case "EXISTS", "DEL":
		return int64(0)
	case "TYPE":
		return "none"
	case "PTTL":
		return int64(-2)
	case "GET":
		return nil
	}
	return resp.Error("ERR unknown command '" + name + "'")
}

func (s leaseStore) lease(now limit.Instant, name string, args [][]byte) any {
	var (
		c   concurrency.Call
		err resp.Error
	)
	switch name {
	case "CC.ACQUIRE":
		err = clause.LeaseAcquire(args, 0, &c)
	case "CC.RELEASE":
		err = clause.LeaseRelease(args, &c)
	case "CC.RENEW":
		err = clause.LeaseRenew(args, &c)
	}
	if err != "" {
		return err
	}
	d, failed := s.decide(now, string(args[0]), &c)
	switch {
	case errors.Is(failed, limit.ErrTooManyMembers):
		return resp.ErrTooManyLeases
	case failed != nil:
		return resp.ErrInternal
	case c.Op != concurrency.Acquire:
		return 1 - d.Refused
	case c.Millis:
		return []any{d.Refused, d.Limit, d.Remaining, limit.MillisUp(d.RetryAfter), limit.MillisUp(d.ResetAfter)}
	}
	return []any{d.Refused, d.Limit, d.Remaining, limit.SecondsUp(d.RetryAfter), limit.SecondsUp(d.ResetAfter)}
}

// decide decides c and stores the effect.
func (s leaseStore) decide(now limit.Instant, key string, c *concurrency.Call) (limit.Decision, error) {
	e := s[key]
	if e == nil {
		e = new(leaseEntry)
	}
	var p concurrency.Plan
	if err := concurrency.Decide(e.mode, e.value, e.expiry, now, c, &p); err != nil {
		return limit.Decision{}, err
	}
	switch p.Action {
	case concurrency.Store:
		e.value = p.Apply(e.value, nil)
		e.mode, e.expiry = p.Mode, p.Expiry
		s[key] = e
	case concurrency.Delete:
		delete(s, key)
	}
	return p.Decision, nil
}
