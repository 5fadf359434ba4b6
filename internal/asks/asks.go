// Package asks submits asks to a store as single commands would, for tests of stores without
// commands. A [decide.Ask] is a call about one limit, or about several, that the store decides.
package asks

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Decider is a store that decides asks. Decide returns when it has written the answer into the ask
// a.
type Decider interface {
	Decide(a *decide.Ask)
}

func answer(v Decider, a decide.Ask) (limit.Decision, error) {
	v.Decide(&a)
	if a.Err != nil {
		return limit.Decision{}, a.Err
	}
	return a.Decision, nil
}

// Throttle submits an ask of CL.THROTTLE about key in the database db, and returns the decision.
func Throttle(v Decider, db int, key []byte, q *gcra.Quota, quantity int64) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Cell, Quota: *q, Quantity: quantity})
}

// Allow submits an ask of SW.ALLOW about key in the database db, and returns the decision.
func Allow(v Decider, db int, key []byte, c *slidingwindow.Call) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Window, Window: *c})
}

// Acquire submits an ask of TB.ACQUIRE about key in the database db, and returns the decision.
func Acquire(v Decider, db int, key []byte, c *tokenbucket.Call) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Bucket, Bucket: *c})
}

// Cancel gives back the tokens that an Acquire with c has taken.
func Cancel(v Decider, db int, key []byte, c *tokenbucket.Call) {
	_, _ = answer(v, decide.Ask{DB: db, Key: key, Family: decide.Cancel, Bucket: *c})
}

// Lease submits an ask of CC.ACQUIRE, CC.RELEASE or CC.RENEW, according to c, and returns the
// decision.
func Lease(v Decider, db int, key []byte, c *concurrency.Call) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Lease, Lease: *c})
}

// Multi submits an ask of RL.MULTI. It stores the decision about each clause in details, which must
// be as long as clauses. refused says that a clause was refused.
func Multi(v Decider, db int, clauses []decide.Clause, details []limit.Decision) (refused bool, err error) {
	a := decide.Ask{DB: db, Family: decide.Several, Clauses: clauses, Details: details}
	v.Decide(&a)
	return a.Refused, a.Err
}
