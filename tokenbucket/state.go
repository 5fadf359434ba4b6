package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// state is a decoded bucket. The mode determines which fields are used.
type state struct {
	mode Mode
	// at is the TAT in Greedy and Debt mode, the start of the current batch in Interval mode, and
	// the first instant that is not promised to a caller in Leaky and Warmup mode.
	at limit.Instant
	// interval is T, the time of one token, in Greedy, Debt and Leaky mode.
	interval time.Duration
	// capacity is the capacity of the last call that stored a Debt bucket.
	capacity int64
	// used is the number of missing tokens in Interval mode. count of them come back every period.
	used, count int64
	period      time.Duration
	// stored is the number of stored permits in Warmup mode, most is its maximum, and warmup is the
	// time in which an idle bucket without permits reaches the maximum.
	stored, most float64
	warmup       time.Duration
}
