package clock_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// t0 is the initial time of the clocks of these tests.
const t0 = limit.Instant(1_700_000_000_000_000_000)

// quota is max burst 15, 30 cells per 60 s: one cell takes 2 s.
func quota(t testing.TB) *gcra.Quota {
	q, err := gcra.NewQuota(15, 30, 60)
	require.NoError(t, err)
	return &q
}

func key(i int) []byte { return fmt.Appendf(nil, "key:%d", i) }
