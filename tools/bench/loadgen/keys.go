package loadgen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// KeySpec specifies which keys a run uses, and how often it uses each.
type KeySpec struct {
	// Kind is one of the Key constants.
	Kind string
	// Count is the number of keys, numbered from First. A flood ignores it.
	Count uint64
	// First is the number of the first key.
	First uint64
	// Exponent is the exponent of Zipf's law: the n-th key is drawn n^-Exponent times as often as
	// the first.
	Exponent float64
	// Share is the part of the traffic that goes to the first HotKeys keys with KeyHot. The rest
	// goes to the other keys.
	Share   float64
	HotKeys uint64
}

// These are the values of [KeySpec.Kind].
const (
	// KeyUniform draws every key equally often.
	KeyUniform = "uniform"
	// KeyZipf draws few keys often and many keys seldom.
	KeyZipf = "zipf"
	// KeyHot sends a share of the traffic to a few keys.
	KeyHot = "hot"
	// KeyFlood never uses a key twice: a run of n commands uses n keys, in order.
	KeyFlood = "flood"
)

// ParseKeys parses a choice of keys: uniform, zipf:EXPONENT, hot:SHARE/KEYS or flood. It applies to
// count keys, numbered from first. The error says what is wrong with the choice, or which value is
// out of range.
func ParseKeys(text string, count, first uint64) (KeySpec, error) {
	k := KeySpec{Count: count, First: first}
	var argument string
	k.Kind, argument, _ = strings.Cut(text, ":")
	var err error
	switch k.Kind {
	case KeyUniform, KeyFlood:
		if argument != "" {
			err = fmt.Errorf("%s takes no argument", k.Kind)
		}
	case KeyZipf:
		k.Exponent, err = strconv.ParseFloat(argument, 64)
	case KeyHot:
		share, keys, _ := strings.Cut(argument, "/")
		if k.Share, err = strconv.ParseFloat(share, 64); err == nil {
			k.HotKeys, err = strconv.ParseUint(keys, 10, 64)
		}
	default:
		return k, fmt.Errorf("keys are chosen by uniform, zipf:EXPONENT, hot:SHARE/KEYS or flood, not by %q", text)
	}
	if err != nil {
		return k, fmt.Errorf("reading the choice of keys %q: %w", text, err)
	}
	return k, k.check()
}

// check returns an error if a value is out of range.
func (k KeySpec) check() error {
	switch {
	case k.Kind != KeyFlood && (k.Count < 1 || k.Count > math.MaxInt64):
		return fmt.Errorf("there must be a key")
	case k.Kind == KeyZipf && !(k.Exponent > 0 && k.Exponent <= 10):
		return fmt.Errorf("the exponent of zipf must be above 0 and at most 10")
	case k.Kind == KeyHot && !(k.Share >= 0 && k.Share <= 1):
		return fmt.Errorf("the share of the hot keys must be between 0 and 1")
	case k.Kind == KeyHot && (k.HotKeys < 1 || k.HotKeys >= k.Count):
		return fmt.Errorf("the hot keys must be some, and fewer than all %d", k.Count)
	}
	return nil
}

// String describes the choice and the number of keys for reports.
func (k KeySpec) String() string {
	switch k.Kind {
	case KeyFlood:
		return "flood: every key is new"
	case KeyZipf:
		return fmt.Sprintf("zipf:%g over %d keys", k.Exponent, k.Count)
	case KeyHot:
		return fmt.Sprintf("hot:%g/%d of %d keys", k.Share, k.HotKeys, k.Count)
	}
	return fmt.Sprintf("%s over %d keys", k.Kind, k.Count)
}

// keySource draws the keys of one flow.
type keySource interface {
	// next returns the number of a key, counted from 0.
	next() uint64
}

// source returns the source of keys for the flow with the given index. flows is the number of
// flows.
func (k KeySpec) source(r *rand.Rand, index, flows int) keySource {
	switch k.Kind {
	case KeyZipf:
		return newZipf(r, k.Exponent, k.Count)
	case KeyHot:
		return &hotKeys{r: r, share: k.Share, hot: k.HotKeys, count: k.Count}
	case KeyFlood:
		return &floodKeys{n: uint64(index), step: uint64(flows)}
	}
	return &uniformKeys{r: r, count: k.Count}
}

type uniformKeys struct {
	r     *rand.Rand
	count uint64
}

func (u *uniformKeys) next() uint64 { return u.r.Uint64N(u.count) }

type hotKeys struct {
	r          *rand.Rand
	share      float64
	hot, count uint64
}

func (h *hotKeys) next() uint64 {
	if h.r.Float64() < h.share {
		return h.r.Uint64N(h.hot)
	}
	return h.hot + h.r.Uint64N(h.count-h.hot)
}

// floodKeys returns every step-th number, so that no two flows use the same key.
type floodKeys struct{ n, step uint64 }

func (f *floodKeys) next() uint64 {
	n := f.n
	f.n += f.step
	return n
}
