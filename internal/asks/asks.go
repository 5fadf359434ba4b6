// Package asks submits asks to a store as single commands would, for tests of stores without
// commands.
package asks

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Decider is a store that decides asks.
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

// Throttle submits the ask of CL.THROTTLE.
func Throttle(v Decider, db int, key []byte, q *gcra.Quota, quantity int64) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Cell, Quota: *q, Quantity: quantity})
}

// Allow submits the ask of SW.ALLOW.
func Allow(v Decider, db int, key []byte, c *slidingwindow.Call) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Window, Window: *c})
}

// Acquire submits the ask of TB.ACQUIRE.
func Acquire(v Decider, db int, key []byte, c *tokenbucket.Call) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Bucket, Bucket: *c})
}

// Cancel returns the tokens that an Acquire of c took.
func Cancel(v Decider, db int, key []byte, c *tokenbucket.Call) {
	_, _ = answer(v, decide.Ask{DB: db, Key: key, Family: decide.Cancel, Bucket: *c})
}

// Lease submits the ask of CC.ACQUIRE and related commands.
func Lease(v Decider, db int, key []byte, c *concurrency.Call) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Lease, Lease: *c})
}

// Multi submits the ask of RL.MULTI. details has the length of clauses and receives the answer to
// each.
func Multi(v Decider, db int, clauses []decide.Clause, details []limit.Decision) (refused bool, err error) {
	a := decide.Ask{DB: db, Family: decide.Several, Clauses: clauses, Details: details}
	v.Decide(&a)
	return a.Refused, a.Err
}
