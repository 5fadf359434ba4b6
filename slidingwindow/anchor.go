package slidingwindow

import (
	"math/bits"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// PhaseAt returns the phase of a series of windows, one of which starts at the instant t. The phase
// is the time from the Unix epoch to the first start of a window at or after the epoch. window must
// be positive.
func PhaseAt(t limit.Instant, window time.Duration) time.Duration {
	return time.Duration(floorMod(int64(t), int64(window)))
}

// PhaseOf returns the phase for a key whose [HashKey] is hash. It is the fraction hash / 2^64 of
// the window, so that a key keeps its relative phase when the window changes. window must be
// positive.
func PhaseOf(hash uint64, window time.Duration) time.Duration {
	hi, _ := bits.Mul64(hash, uint64(window))
	return time.Duration(hi)
}

// HashKey returns the hash from which ANCHOR KEY takes a phase: 64-bit FNV-1a over the bytes of
// key, then the 64-bit finalizer of MurmurHash3. The finalizer is needed because FNV alone gives
// short keys similar high bits, which [PhaseOf] uses. The hash has no seed, since a key must have
// the same phase after a restart and on every server. So clients can choose keys with the same
// phase, but gain nothing else by that.
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

// elapsedAt returns the time by which at is later than the start of the window that contains at.
// The windows have the given phase and length. The result is from 0 to window-1.
func elapsedAt(at limit.Instant, phase, window int64) int64 {
	e := floorMod(int64(at), window) - phase
	if e < 0 {
		e += window
	}
	return e
}

// floorMod returns a mod b, from 0 to b-1 even for a negative a. b must be positive.
func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}
