package clock

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// StartAt is Start where the machine's clocks show now.
func (r Resumption) StartAt(now Record) (start limit.Instant, doubted time.Duration) {
	return r.start(now)
}
