package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// state is a decoded bucket. The mode decides which fields are used.
type state struct {
	mode Mode
	// at is the TAT of Greedy and Debt, the start of the current batch of Interval,
	// and the first instant that Leaky and Warmup have not promised.
	at limit.Instant
	// interval is T: Greedy, Debt, Leaky.
	interval time.Duration
	// capacity is that of the call that stored it: Debt.
	capacity int64
	// used tokens are missing, count of them come back every period: Interval.
	used, count int64
	period      time.Duration
	// stored permits of at most most, which fill up within warmup: Warmup.
	stored, most float64
	warmup       time.Duration
}
