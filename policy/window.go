package policy

import "strconv"

// FixedWindow returns the limits "SW most seconds FIXED". The bounds are those of that clause: most is at least 0
// and seconds at least 1, and FixedWindow panics if one of them is out of range.
func FixedWindow(most, seconds int64) *Limits { return fixedWindow(most, seconds, false) }

// FixedWindowMillis does what [FixedWindow] does, for a window whose length is in milliseconds.
func FixedWindowMillis(most, millis int64) *Limits { return fixedWindow(most, millis, true) }

// FixedWindowFromFirst returns the limits "SW most seconds FIXED ANCHOR FIRST", whose windows begin with the first
// call. The bounds are those of [FixedWindow].
func FixedWindowFromFirst(most, seconds int64) *Limits {
	return fixedWindow(most, seconds, false, "ANCHOR", "FIRST")
}

func fixedWindow(most, window int64, millis bool, options ...string) *Limits {
	words := [][]byte{[]byte("SW"), strconv.AppendInt(nil, most, 10), strconv.AppendInt(nil, window, 10), []byte("FIXED")}
	for _, word := range options {
		words = append(words, []byte(word))
	}
	l, err := ParseLimits(words, millis, Bounds{})
	if err != "" {
		panic("policy: a fixed window: " + string(err))
	}
	return l
}

// Unlimited returns limits that allow every call: "NONE".
func Unlimited() *Limits {
	l, err := ParseLimits([][]byte{[]byte("NONE")}, false, Bounds{})
	if err != "" {
		panic("policy: Unlimited: " + string(err))
	}
	return l
}
