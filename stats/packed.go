package stats

import (
	"encoding/binary"
	"math"
)

// Packed reads statistics that another server has packed with [PackText], [PackRate], [PackBlock] and
// [binary.AppendUvarint]. The bytes may be any: after a fault, it returns zero values and reads nothing more.
type Packed struct {
	rest []byte
	bad  bool
}

// Unpack returns a reader of b.
func Unpack(b []byte) *Packed { return &Packed{rest: b} }

// Number returns the next number. A number above most is a fault.
func (p *Packed) Number(most int64) int64 {
	n, size := binary.Uvarint(p.rest)
	if p.bad = p.bad || size <= 0 || n > uint64(most); p.bad {
		return 0
	}
	p.rest = p.rest[size:]
	return int64(n)
}

// Text returns the next text. A text of more than most bytes is a fault.
func (p *Packed) Text(most int) string { return string(p.Bytes(most)) }

// Bytes returns the bytes of the next block, which refer to the bytes of p. A block of more than most bytes is a fault.
func (p *Packed) Bytes(most int) []byte { return p.bytes(int(p.Number(int64(most)))) }

// bytes returns the next n bytes.
func (p *Packed) bytes(n int) []byte {
	if p.bad = p.bad || n > len(p.rest); p.bad {
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// Rate returns the next rate. A rate that is negative, not a number or above [math.MaxFloat32] is a fault.
func (p *Packed) Rate() float64 {
	b := p.bytes(8)
	if p.bad {
		return 0
	}
	rate := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if p.bad = !(rate >= 0 && rate <= math.MaxFloat32); p.bad { // the condition is also false if rate is not a number
		return 0
	}
	return rate
}

// Block calls read with a reader of the next block, and skips the bytes that read leaves, which are fields of later
// releases. A fault in the block is a fault of p.
func (p *Packed) Block(read func(b *Packed)) {
	in := Packed{rest: p.Bytes(math.MaxInt32)}
	if !p.bad {
		read(&in)
		p.bad = in.bad
	}
}

// List calls read for each of the elements of the next list, until there is a fault. A list of more than most elements
// is a fault. Each element is a block, as for [Packed.Block].
func (p *Packed) List(most int64, read func(b *Packed)) {
	for range p.Number(most) {
		if p.Block(read); p.bad {
			return
		}
	}
}

// Fault records a fault, because a value is not valid.
func (p *Packed) Fault() { p.bad = true }

// OK reports whether there was no fault.
func (p *Packed) OK() bool { return !p.bad }

// Empty reports whether there was no fault and nothing is left to be read.
func (p *Packed) Empty() bool { return !p.bad && len(p.rest) == 0 }

// PackText appends text to dst, for [Packed.Text].
func PackText[T ~string | ~[]byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// PackRate appends rate to dst, for [Packed.Rate].
func PackRate(dst []byte, rate float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(rate))
}

// PackBlock appends the bytes that pack appends to dst, as a block for [Packed.Block].
func PackBlock(dst []byte, pack func(dst []byte) []byte) []byte { return PackText(dst, pack(nil)) }
