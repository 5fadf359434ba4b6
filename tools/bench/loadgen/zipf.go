package loadgen

import (
	"math"
	"math/rand/v2"
)

// zipfKeys draws k from 0 to count-1 with a probability proportional to
// (k+1)^-exponent, in constant time and memory, by rejection-inversion (Hörmann
// and Derflinger, "Rejection-inversion to generate variates from monotone
// discrete distributions", 1996). Unlike rand.Zipf it takes exponents of 1 and
// below, where most measured traffic lies.
//
// The histogram of x^-exponent lies below the curve's integral between high and low. A point of
// that area is drawn and inverted to an x. In the rare case that the point lies outside the
// histogram it is rejected and drawn again.
type zipfKeys struct {
	r         *rand.Rand
	exponent  float64
	count     float64
	high, low float64
	// near is the distance from an integer within which x needs no check.
	near float64
}

func newZipf(r *rand.Rand, exponent float64, count uint64) *zipfKeys {
	z := &zipfKeys{r: r, exponent: exponent, count: float64(count)}
	z.high = z.integral(1.5) - 1
	z.low = z.integral(z.count + 0.5)
	z.near = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

func (z *zipfKeys) next() uint64 {
	for {
		area := z.low + z.r.Float64()*(z.high-z.low)
		x := z.inverse(area)
		k := min(max(math.Floor(x+0.5), 1), z.count)
		if k-x <= z.near || area >= z.integral(k+0.5)-z.density(k) {
			return uint64(k) - 1
		}
	}
}

func (z *zipfKeys) density(x float64) float64 { return math.Exp(-z.exponent * math.Log(x)) }

// integral returns the integral of density from 1 to x: (x^(1-s)-1)/(1-s), and log x at s = 1.
func (z *zipfKeys) integral(x float64) float64 {
	log := math.Log(x)
	return log * ratio(math.Expm1, (1-z.exponent)*log)
}

// inverse returns the x whose integral is area.
func (z *zipfKeys) inverse(area float64) float64 {
	t := max((1-z.exponent)*area, -1) // rounding must not lead out of the domain of the logarithm
	return math.Exp(area * ratio(math.Log1p, t))
}

// ratio returns f(t)/t for a function with f(t) ≈ t near 0.
func ratio(f func(float64) float64, t float64) float64 {
	if math.Abs(t) < 1e-8 {
		return 1 // the error is t/2, which is too small to be visible in the draws
	}
	return f(t) / t
}
