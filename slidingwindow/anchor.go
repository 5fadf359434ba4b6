package slidingwindow

import (
	"math/bits"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// PhaseAt returns the phase of windows of which one starts at the instant t, in the past or in the
// future. window must be positive.
func PhaseAt(t limit.Instant, window time.Duration) time.Duration {
	return time.Duration(floorMod(int64(t), int64(window)))
}

// PhaseOf returns the phase that a key with the given [HashKey] has: the hash as
// a fraction of 2^64 of the window, so that a key keeps its share of the window
// when the window changes. window must be positive.
func PhaseOf(hash uint64, window time.Duration) time.Duration {
	hi, _ := bits.Mul64(hash, uint64(window))
	return time.Duration(hi)
}

// HashKey returns the hash from which ANCHOR KEY takes a phase: 64-bit FNV-1a over the key's bytes,
// then MurmurHash3's 64-bit finalizer, because with FNV alone short keys have similar high bits,
// which [PhaseOf] uses. It has no seed, since a key must have the same phase after a restart and on
// every server. So it does not protect against chosen keys, but these only gain a common phase.
func HashKey(key []byte) uint64 {
	const (
		fnvOffset = 0xcbf29ce484222325
		fnvPrime  = 0x100000001b3
	)
	h := uint64(fnvOffset)
	for _, b := range key {
		h = (h ^ uint64(b)) * fnvPrime
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// elapsedAt returns the time since the start of the window that contains at, among windows of the
// given phase: 0 <= elapsed < window.
func elapsedAt(at limit.Instant, phase, window int64) int64 {
	e := floorMod(int64(at), window) - phase
	if e < 0 {
		e += window
	}
	return e
}

// floorMod returns a mod b in 0..b-1 for a positive b, whatever a's sign.
func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}
