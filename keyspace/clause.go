package keyspace

import (
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Clause is one limit of an RL.MULTI: a key and exactly one of the three calls.
type Clause struct {
	Key      []byte
	Quota    *gcra.Quota // with Quantity
	Quantity int64
	Window   *slidingwindow.Call
	Bucket   *tokenbucket.Call
	// Peek only asks. If one clause does, the whole call does.
	Peek bool
}

// fits reports whether what a key holds is what its clause is about.
func (c *Clause) fits(k entry.Kind) bool {
	return k == entry.None || c.Window != nil && k.IsWindow() || c.Bucket != nil && k.IsBucket() ||
		c.Quota != nil && (k == entry.Cell || k == entry.String)
}

// clausePlan is what was decided about one clause.
type clausePlan struct {
	next   limit.Instant // of a cell, with write
	write  bool
	window slidingwindow.Plan
	bucket tokenbucket.Plan
}

// changes reports whether the plan has any effect.
func (plan *clausePlan) changes(c *Clause) bool {
	return c.Window != nil && plan.window.Action != slidingwindow.Keep ||
		c.Bucket != nil && plan.bucket.Action != tokenbucket.Keep || c.Quota != nil && plan.write
}

// stores reports whether the plan would make a key where there is none.
func (plan *clausePlan) stores(c *Clause, now limit.Instant) bool {
	switch {
	case c.Window != nil:
		return plan.window.Action == slidingwindow.Store
	case c.Bucket != nil:
		return plan.bucket.Action == tokenbucket.Store
	}
	return plan.write && plan.next > now
}

// clauses are those of one call, and what is known of them as a whole. The plans are not
// kept: there may be thousands, and deciding once more takes less than remembering,
// since a decision depends on nothing but what the key holds, the instant and the call.
type clauses struct {
	db      int
	list    []Clause
	spots   []spot
	details []limit.Decision

	refused bool // one of them is
	changes bool // one has something to store, or to remove
	grows   bool // one would make a new key
}

func (c *clauses) key(i int) []byte { return c.list[i].Key }
