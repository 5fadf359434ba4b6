package tokenbucket

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// curve is the price of a permit as a function of the number of stored permits, as in Guava
// (SmoothRateLimiter.SmoothWarmingUp). Up to threshold permits, the price is one interval. From
// there it rises in a straight line to Cold intervals when the bucket is cold, with most permits
// stored. The area below the line between threshold and most is the duration of the warm-up.
//
// Permits are doubles here, as they are in Guava, and this is the only place where a decision
// depends on one. The price of a call is at most 3 ns below the exact integral. The price has three
// parts, each of which is truncated to whole nanoseconds: permits above the threshold, permits
// below it, and permits that are not stored. In addition there is an error below 2^-49 times Cold
// times the duration of the warm-up, in either direction. This error is less than a nanosecond for
// the default Cold and a warm-up of two days.
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

// price returns the cost of permits that are taken out of a bucket. stored is the number of permits
// in the bucket, and permits is the number taken, at most stored. The costs above and below the
// threshold are each truncated to whole nanoseconds.
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

// at returns the price of one permit if the number of stored permits exceeds the threshold by
// above.
func (k *curve) at(above float64) float64 { return k.stable + above*k.slope }

// spend takes quantity permits from s, the stored ones first, and returns their cost. Permits that
// are not stored cost one interval each. The cost of whole permits is an integer product. Only the
// cost of the fraction that completes the stored permits to a whole number is a floating-point
// product.
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

// gather adds the permits that have accumulated by now since s.at. It does nothing while a caller
// waits.
func (s *state) gather(now limit.Instant) {
	if now <= s.at {
		return
	}
	gap := float64(now.Sub(s.at))
	s.stored = min(s.most, s.stored+gap/(float64(s.warmup)/s.most))
	s.at = now
}

// rescale converts the bucket to the curve of c. As with Guava's setRate, the stored permits keep
// their ratio to the maximum, and the instant until which a caller has to wait does not change.
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
