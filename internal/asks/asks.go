// Package asks asks a store what one command would, for tests that are about the store and
// not about commands.
package asks

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Decider is a store.
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

// Throttle is CL.THROTTLE.
func Throttle(v Decider, db int, key []byte, q *gcra.Quota, quantity int64) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Cell, Quota: *q, Quantity: quantity})
}

// Allow is SW.ALLOW.
func Allow(v Decider, db int, key []byte, c *slidingwindow.Call) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Window, Window: *c})
}

// Acquire is TB.ACQUIRE.
func Acquire(v Decider, db int, key []byte, c *tokenbucket.Call) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Bucket, Bucket: *c})
}

// Cancel gives back what an Acquire of c took.
func Cancel(v Decider, db int, key []byte, c *tokenbucket.Call) {
	_, _ = answer(v, decide.Ask{DB: db, Key: key, Family: decide.Cancel, Bucket: *c})
}

// Lease is CC.ACQUIRE and its kin.
func Lease(v Decider, db int, key []byte, c *concurrency.Call) (limit.Decision, error) {
	return answer(v, decide.Ask{DB: db, Key: key, Family: decide.Lease, Lease: *c})
}

// Multi is RL.MULTI; details, as long as clauses, receives each clause's own answer.
func Multi(v Decider, db int, clauses []decide.Clause, details []limit.Decision) (refused bool, err error) {
	a := decide.Ask{DB: db, Family: decide.Several, Clauses: clauses, Details: details}
	v.Decide(&a)
	return a.Refused, a.Err
}
