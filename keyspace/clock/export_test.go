package clock

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// StartAt is Start with now as the readings of the machine's clocks.
func (r Resumption) StartAt(now Record) (start limit.Instant, doubted time.Duration) {
	return r.start(now)
}
