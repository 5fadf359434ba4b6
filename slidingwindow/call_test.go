package slidingwindow_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	sound := slidingwindow.Call{Mode: slidingwindow.Buckets, Limit: 1, Window: 1, Slots: 2}
	for name, test := range map[string]struct {
		change func(*slidingwindow.Call)
		want   error
	}{
		"sound":                   {func(*slidingwindow.Call) {}, nil},
		"greatest":                {func(c *slidingwindow.Call) { c.Limit, c.Window, c.Slots = math.MaxInt64, 1<<61, 1000 }, nil},
		"least quantity":          {func(c *slidingwindow.Call) { c.Quantity = math.MinInt64 }, nil},
		"penalized peek":          {func(c *slidingwindow.Call) { c.Penalize, c.Charge = true, slidingwindow.Peek }, nil},
		"log at its cap":          {func(c *slidingwindow.Call) { c.Mode, c.Limit = slidingwindow.Log, 100_000 }, nil},
		"no mode":                 {func(c *slidingwindow.Call) { c.Mode = slidingwindow.None }, slidingwindow.ErrExclusive},
		"unknown mode":            {func(c *slidingwindow.Call) { c.Mode = 5 }, slidingwindow.ErrExclusive},
		"even without slots":      {func(c *slidingwindow.Call) { c.Mode, c.Even = slidingwindow.Fixed, true }, slidingwindow.ErrExclusive},
		"log with a phase":        {func(c *slidingwindow.Call) { c.Mode, c.Phase, c.Window = slidingwindow.Log, 1, 2 }, slidingwindow.ErrExclusive},
		"log from its first":      {func(c *slidingwindow.Call) { c.Mode, c.First = slidingwindow.Log, true }, slidingwindow.ErrExclusive},
		"penalized force":         {func(c *slidingwindow.Call) { c.Penalize, c.Charge = true, slidingwindow.Force }, slidingwindow.ErrExclusive},
		"penalized partial":       {func(c *slidingwindow.Call) { c.Penalize, c.Charge = true, slidingwindow.Partial }, slidingwindow.ErrExclusive},
		"blocking peek":           {func(c *slidingwindow.Call) { c.Block, c.Charge = true, slidingwindow.Peek }, slidingwindow.ErrExclusive},
		"blocking partial":        {func(c *slidingwindow.Call) { c.Block, c.Charge = true, slidingwindow.Partial }, slidingwindow.ErrExclusive},
		"blocking force":          {func(c *slidingwindow.Call) { c.Block, c.Charge = true, slidingwindow.Force }, slidingwindow.ErrExclusive},
		"blocking penalty":        {func(c *slidingwindow.Call) { c.Block, c.Penalize = true, true }, slidingwindow.ErrExclusive},
		"a limit of 0":            {func(c *slidingwindow.Call) { c.Limit = 0 }, nil},
		"negative limit":          {func(c *slidingwindow.Call) { c.Limit = math.MinInt64 }, slidingwindow.ErrRange},
		"no window":               {func(c *slidingwindow.Call) { c.Window = 0 }, slidingwindow.ErrRange},
		"one slot":                {func(c *slidingwindow.Call) { c.Slots = 1 }, slidingwindow.ErrRange},
		"too many slots":          {func(c *slidingwindow.Call) { c.Slots = 1001 }, slidingwindow.ErrRange},
		"a phase of a window":     {func(c *slidingwindow.Call) { c.Phase = 1 }, slidingwindow.ErrRange},
		"a negative phase":        {func(c *slidingwindow.Call) { c.Phase = -1 }, slidingwindow.ErrRange},
		"a window beyond 2^61 ns": {func(c *slidingwindow.Call) { c.Window = 1<<61 + 1 }, limit.ErrOverflow},
		"log beyond the cap":      {func(c *slidingwindow.Call) { c.Mode, c.Limit = slidingwindow.Log, 100_001 }, slidingwindow.ErrLogTooLong},
		"log beyond its cap": {func(c *slidingwindow.Call) {
			c.Mode, c.Limit, c.LogMaxEntries = slidingwindow.Log, 8, 7
		}, slidingwindow.ErrLogTooLong},
	} {
		c := sound
		test.change(&c)
		require.ErrorIs(t, c.Validate(), test.want, name)
	}
}

func TestPhaseAt(t *testing.T) {
	for _, test := range []struct {
		at     limit.Instant
		window time.Duration
		want   time.Duration
	}{
		{0, 7, 0},
		{6, 7, 6},
		{7, 7, 0},
		{-1, 7, 6},
		{-7, 7, 0},
		{limit.MaxInstant, 1 << 61, 1<<61 - 1},
		{limit.MinInstant, 1 << 61, 0},
		{limit.MinInstant, 10, 2},
		{5, 1, 0},
	} {
		require.Equal(t, test.want, slidingwindow.PhaseAt(test.at, test.window), "%d mod %d", test.at, test.window)
	}
}

// TestAnchorFarFromNowSetsThePhase: an anchor far from now sets the phase.
func TestAnchorFarFromNowSetsThePhase(t *testing.T) {
	const week = 7 * 24 * time.Hour
	monday := time.Date(2040, 1, 2, 0, 0, 0, 0, time.UTC)
	var k key
	c := slidingwindow.Call{
		Mode: slidingwindow.Fixed, Limit: 5, Window: week, Quantity: 5,
		Phase: slidingwindow.PhaseAt(limit.Instant(monday.UnixNano()), week),
	}
	sunday := time.Date(2026, 11, 22, 23, 59, 59, 0, time.UTC)
	require.Equal(t, five{0, 5, 0, -1, 1000}, k.do(t, limit.Instant(sunday.UnixNano()), c))
}

// TestHashKeyIsFixed pins the hash, because a phase must survive restarts and releases.
func TestHashKeyIsFixed(t *testing.T) {
	for text, want := range map[string]uint64{
		"":       0xefd01f60ba992926,
		"k":      0x2ba437a975bf0065,
		"user:1": 0x4ce53ee4648cef41,
	} {
		require.Equal(t, want, slidingwindow.HashKey([]byte(text)), "%q is %#x", text, slidingwindow.HashKey([]byte(text)))
	}
}

// TestPhasesOfKeysSpreadOverTheWindow: keys that differ in one digit have phases that spread evenly
// over the window.
func TestPhasesOfKeysSpreadOverTheWindow(t *testing.T) {
	const keys, parts = 100_000, 20
	var in [parts]int
	for i := range keys {
		phase := slidingwindow.PhaseOf(slidingwindow.HashKey([]byte("user:"+strconv.Itoa(i))), parts*time.Second)
		in[phase/time.Second]++
	}
	for i, n := range in {
		require.InDelta(t, keys/parts, n, 5*70, "part %d: five standard deviations", i)
	}
	require.Less(t, slidingwindow.PhaseOf(math.MaxUint64, slidingwindow.MaxWindow), slidingwindow.MaxWindow)
	require.Zero(t, slidingwindow.PhaseOf(math.MaxUint64, 1))
}
