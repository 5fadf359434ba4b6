package gcra_test

import (
	"fmt"
	"time"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// Example allows 30 cells per minute and a burst of 15 more, as in CL.THROTTLE k 15 30 60.
func Example() {
	quota, err := gcra.NewQuota(15, 30, 60)
	if err != nil {
		fmt.Println(err)
		return
	}
	var tat limit.Instant // a key that does not exist
	now := limit.Instant(1_700_000_000 * time.Second)

	tat, d, _ := gcra.Decide(tat, now, &quota, 16)
	fmt.Println(d.Allowed(), d.Remaining, d.ResetAfter)
	_, d, _ = gcra.Decide(tat, now.Add(time.Second), &quota, 1)
	fmt.Println(d.Allowed(), d.RetryAfter)
	// Output:
	// true 0 32s
	// false 1s
}
