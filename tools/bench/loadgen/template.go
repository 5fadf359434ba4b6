package loadgen

import (
	"fmt"
	"strconv"
	"strings"
)

// The widths of the fields in an encoded command are in digits.
const (
	// DefaultKeyWidth is the width of {key} if [Shape] has none.
	DefaultKeyWidth = 12
	// MaxKeyWidth limits the width of {key}. It is far above the digits of a number: zeros fill the
	// rest, so that keys can have any length.
	MaxKeyWidth = 1024
	// seqWidth is the width of {seq}.
	seqWidth = 16
	// maxQuantities is the maximum number of values that {q} can have: the template keeps an
	// encoded form of each.
	maxQuantities = 1000
	maxDataSize   = 1 << 20
)

// Shape specifies how the placeholders of a template are filled.
type Shape struct {
	// KeyWidth is the number of digits of {key}; 0 means [DefaultKeyWidth].
	KeyWidth int
	// MinQuantity and MaxQuantity are the range of {q}, which is drawn uniformly.
	MinQuantity, MaxQuantity int64
	// DataSize is the number of bytes of {data}.
	DataSize int
}

func (s Shape) check() error {
	switch {
	case s.KeyWidth < 1 || s.KeyWidth > MaxKeyWidth:
		return fmt.Errorf("the key's width must be between 1 and %d digits", MaxKeyWidth)
	case s.MinQuantity > s.MaxQuantity || s.MaxQuantity-s.MinQuantity >= maxQuantities || s.MaxQuantity-s.MinQuantity < 0:
		return fmt.Errorf("quantities must be a range of at most %d values", maxQuantities)
	case s.DataSize < 0 || s.DataSize > maxDataSize:
		return fmt.Errorf("the size of the data must be between 0 and %d bytes", maxDataSize)
	}
	return nil
}

// Template is a command line whose placeholders are filled anew for every request:
//
//	{key}   the number of the key, of fixed width
//	{q}     a quantity
//	{seq}   a number that no other request of the run has
//	{data}  filler bytes
//
// Words are separated by blanks. Single and double quotes hold a word together, and in double
// quotes the escape sequences are the same as in Redis. Other braces are kept as they are, since
// they are hash tags.
type Template struct {
	text   string
	weight int
	words  []string
	// forms are the encoded command, one for each quantity from Shape.MinQuantity. A template
	// without {q} has one form.
	forms []form
	shape Shape
	// quantities says whether {q} occurs.
	quantities bool
	// limit is the limit that replies show. It is nil if the command has none, or none that can be
	// checked. charges are the limits and keys that a call charges.
	limit   *Limit
	charges []charge
}

// form is an encoded command with zeros in place of its numbers.
type form struct {
	bytes []byte
	// keys and seqs are the offsets of the end of each placeholder.
	keys, seqs []int
}

// String returns the command line without its weight.
func (t *Template) String() string { return t.text }

// Name returns the name of the command in upper case.
func (t *Template) Name() string { return strings.ToUpper(t.words[0]) }

// Limit returns the limit that the command asks for, nil if it has none that can be checked.
func (t *Template) Limit() *Limit { return t.limit }

// encode returns the encoded command with the given quantity in place of {q}.
func (t *Template) encode(quantity int64) form {
	var f form
	b := fmt.Appendf(nil, "*%d\r\n", len(t.words))
	for _, word := range t.words {
		pieces := splitPlaces(word)
		size := 0
		for i, p := range pieces {
			switch p.text {
			case "{key}":
				pieces[i].fill = strings.Repeat("0", t.shape.KeyWidth)
			case "{seq}":
				pieces[i].fill = strings.Repeat("0", seqWidth)
			case "{q}":
				pieces[i].fill = strconv.FormatInt(quantity, 10)
			case "{data}":
				pieces[i].fill = strings.Repeat("x", t.shape.DataSize)
			default:
				pieces[i].fill = p.text
			}
			size += len(pieces[i].fill)
		}
		b = fmt.Appendf(b, "$%d\r\n", size)
		for _, p := range pieces {
			b = append(b, p.fill...)
			switch p.text {
			case "{key}":
				f.keys = append(f.keys, len(b))
			case "{seq}":
				f.seqs = append(f.seqs, len(b))
			}
		}
		b = append(b, "\r\n"...)
	}
	f.bytes = b
	return f
}

// append appends the request for one key to dst. pick is the index of the quantity; 0 is the
// smallest.
func (t *Template) append(dst []byte, key, seq uint64, pick int) []byte {
	f := &t.forms[pick]
	start := len(dst)
	dst = append(dst, f.bytes...)
	for _, end := range f.keys {
		putDigits(dst[start+end-t.shape.KeyWidth:start+end], key)
	}
	for _, end := range f.seqs {
		putDigits(dst[start+end-seqWidth:start+end], seq)
	}
	return dst
}

func (t *Template) quantity(pick int) int64 { return t.shape.MinQuantity + int64(pick) }

// putDigits writes n over the zeros at the end of place. If place is too short, the high digits are
// lost.
func putDigits(place []byte, n uint64) {
	for i := len(place) - 1; n > 0 && i >= 0; i-- {
		place[i] = byte('0' + n%10)
		n /= 10
	}
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// piece is a part of a word: a placeholder, or the text between placeholders.
type piece struct{ text, fill string }

var places = []string{"{key}", "{q}", "{seq}", "{data}"}

func splitPlaces(word string) []piece {
	var pieces []piece
	literal := 0
	for i := 0; i < len(word); {
		n := placeAt(word[i:])
		if n == 0 {
			i++
			continue
		}
		if literal < i {
			pieces = append(pieces, piece{text: word[literal:i]})
		}
		pieces = append(pieces, piece{text: word[i : i+n]})
		i += n
		literal = i
	}
	if literal < len(word) {
		pieces = append(pieces, piece{text: word[literal:]})
	}
	return pieces
}

// placeAt returns the length of the placeholder that s begins with, 0 if there is none.
func placeAt(s string) int {
	for _, p := range places {
		if strings.HasPrefix(s, p) {
			return len(p)
		}
	}
	return 0
}
