package tokenbucket

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// curve is Guava's price of a permit as a function of how many are stored
// (SmoothRateLimiter.SmoothWarmingUp): one interval up to threshold, then rising
// in a straight line to Cold intervals when the bucket is cold, with most stored.
// The area below the line between threshold and most is the warm-up duration.
//
// Permits are doubles here, as they are in Guava, and this is the only place where
// a decision depends on one. What a call has to pay is at most 3 ns below the exact
// integral, one for each part that is cut to whole nanoseconds (permits above the
// threshold, below it, and not stored), give or take an error below 2^-49 of Cold
// times the warm-up duration: less than a nanosecond for the default factor and a
// warm-up of two days.
type curve struct {
	stable, threshold, most, slope float64
}

func newCurve(c *Call) curve {
	stable, warmup := float64(c.Interval), float64(c.Warmup)
	cold := stable * c.Cold
	rising := 2 * warmup / (stable + cold)
	k := curve{stable: stable, threshold: 0.5 * warmup / stable}
	k.most = k.threshold + rising
	k.slope = (cold - stable) / rising
	return k
}

// price returns the cost of permits from stored ones, which must be at least as many. Each of the
// two parts of the curve is truncated to whole nanoseconds.
func (k *curve) price(stored, permits float64) time.Duration {
	var price time.Duration
	if above := stored - k.threshold; above > 0 {
		taken := min(above, permits)
		length := k.at(above) + k.at(above-taken)
		price = time.Duration(taken * length / 2)
		permits -= taken
	}
	return price + time.Duration(k.stable*permits)
}

// at returns the price of one permit, above permits above the threshold.
func (k *curve) at(above float64) float64 { return k.stable + above*k.slope }

// spend takes quantity permits, the stored ones first, and returns their cost. Permits that are not
// stored cost one interval each; only the fraction of one beside the stored permits is a
// floating-point product.
func (s *state) spend(quantity int64, k curve) time.Duration {
	if float64(quantity) <= s.stored {
		cost := k.price(s.stored, float64(quantity))
		s.stored -= float64(quantity)
		return cost
	}
	cost := k.price(s.stored, s.stored)
	whole, fraction := math.Modf(s.stored)
	rest := quantity - int64(whole)
	if fraction > 0 {
		rest--
		cost = plus(cost, time.Duration((1-fraction)*k.stable))
	}
	s.stored = 0
	return plus(cost, times(time.Duration(k.stable), rest))
}

// gather stores the permits that accumulate while no caller waits.
func (s *state) gather(now limit.Instant) {
	if now <= s.at {
		return
	}
	gap := float64(now.Sub(s.at))
	s.stored = min(s.most, s.stored+gap/(float64(s.warmup)/s.most))
	s.at = now
}

// rescale converts the bucket to the call's curve. The stored permits keep their share of the
// maximum, and a promised wait keeps its instant, as with Guava's setRate.
func (s *state) rescale(c *Call) {
	most := newCurve(c).most
	if s.stored >= s.most {
		s.stored = most
	} else {
		s.stored = min(most, s.stored*most/s.most)
	}
	s.most, s.warmup = most, c.Warmup
}

// cold returns the instant at which the bucket will have stored its maximum.
func (s *state) cold() limit.Instant {
	missing := (s.most - s.stored) * (float64(s.warmup) / s.most)
	return s.at.Add(time.Duration(math.Ceil(missing)))
}
