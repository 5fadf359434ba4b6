package slidingwindow_test

import (
	"fmt"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

// Example allows three requests per ten seconds of one client, whose state the caller keeps.
func Example() {
	call := slidingwindow.Call{Mode: slidingwindow.Log, Limit: 3, Window: 10 * time.Second, Quantity: 1}
	if err := call.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	var (
		plan   slidingwindow.Plan
		mode   slidingwindow.Mode
		value  []byte
		expiry limit.Instant
	)
	start := limit.Instant(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).UnixNano())
	for _, second := range []time.Duration{0, 2, 2, 5, 10} {
		now := start.Add(second * time.Second)
		if err := slidingwindow.Decide(mode, value, expiry, now, &call, &plan); err != nil {
			fmt.Println(err)
			return
		}
		if plan.Action == slidingwindow.Store {
			mode, value, expiry = plan.Mode, plan.Apply(value, nil), plan.Expiry
		}
		d := plan.Decision
		fmt.Printf("%2d s: allowed %v, %d left, retry after %d s\n",
			second, d.Allowed(), d.Remaining, limit.SecondsUp(d.RetryAfter))
	}
	// Output:
	//  0 s: allowed true, 2 left, retry after -1 s
	//  2 s: allowed true, 1 left, retry after -1 s
	//  2 s: allowed true, 0 left, retry after -1 s
	//  5 s: allowed false, 0 left, retry after 5 s
	// 10 s: allowed true, 0 left, retry after -1 s
}
