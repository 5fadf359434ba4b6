package policy

import (
	"bytes"
	"strconv"
)

// ParseFactor parses the factor of a boost, a number from 0.001 to 1000 with at most three
// decimals, and returns it in thousandths. The error is [ErrFactor].
func ParseFactor(text []byte) (thousandths int64, err error) {
	whole, decimals, pointed := bytes.Cut(text, []byte{'.'})
	if len(whole) < 1 || len(whole) > 4 || pointed && (len(decimals) < 1 || len(decimals) > 3) {
		return 0, ErrFactor
	}
	for i := range len(whole) + 3 {
		digit := byte('0')
		switch {
		case i < len(whole):
			digit = whole[i]
		case i-len(whole) < len(decimals):
			digit = decimals[i-len(whole)]
		}
		if digit < '0' || digit > '9' {
			return 0, ErrFactor
		}
		thousandths = thousandths*10 + int64(digit-'0')
	}
	if thousandths < MinFactor || thousandths > MaxFactor {
		return 0, ErrFactor
	}
	return thousandths, nil
}

// AppendFactor appends a factor in thousandths as [ParseFactor] reads it, such as 1.5, with no
// more decimals than it needs.
func AppendFactor(dst []byte, thousandths int64) []byte {
	dst = strconv.AppendInt(dst, thousandths/1000, 10)
	if rest := thousandths % 1000; rest != 0 {
		dst = append(dst, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
		dst = bytes.TrimRight(dst, "0")
	}
	return dst
}
