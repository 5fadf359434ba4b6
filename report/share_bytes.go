package report

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/cellserver/cellserver/stats"
)

// shareLevel is the first number of an encoded share. A release that only adds fields at the end of a block does not
// change it.
const shareLevel = 1

// errShare is the error for bytes that are not a share.
var errShare = errors.New("the bytes are no share of a report that this release can read")

// AppendShare appends the encoded share of this server to dst, at most [MaxShare] bytes.
func (r *Reporter) AppendShare(dst []byte) []byte {
	all := r.share()
	s := all.bounded()
	return s.pack(dst)
}

// pack appends the bytes of s to dst.
func (s *Share) pack(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, shareLevel)
	dst = stats.PackBlock(dst, func(b []byte) []byte {
		b = stats.PackText(b, s.kind)
		return append(b, flag(s.sick))
	})
	dst = stats.PackBlock(dst, s.now.pack)
	for i := range s.histories {
		dst = stats.PackBlock(dst, s.histories[i].pack)
	}
	dst = stats.PackBlock(dst, func(b []byte) []byte {
		b = s.rest.pack(b)
		b = binary.AppendUvarint(b, uint64(len(s.groups)))
		for i := range s.groups {
			b = s.groups[i].pack(b)
		}
		return b
	})
	for _, keys := range []*shareKeys{&s.denied, &s.called} {
		dst = stats.PackBlock(dst, keys.pack)
	}
	return dst
}

func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// numbers appends numbers that are not negative to b.
func numbers[T int64 | uint32](b []byte, all ...T) []byte {
	for _, n := range all {
		b = binary.AppendUvarint(b, uint64(max(0, n)))
	}
	return b
}

func rates(b []byte, all ...float64) []byte {
	for _, f := range all {
		b = stats.PackRate(b, f)
	}
	return b
}

func (n *shareNow) pack(b []byte) []byte {
	b = rates(b, n.calls, n.denied, n.failed)
	b = numbers(b, n.p99, n.clients, n.keysDenied, n.repeats, int64(len(n.reservations)))
	for _, c := range n.reservations {
		b = stats.PackBlock(b, func(b []byte) []byte { return numbers(stats.PackText(b, c.Name), c.N) })
	}
	return b
}

func (h *shareHistory) pack(b []byte) []byte {
	b = numbers(b, h.since.Milliseconds(), int64(len(h.steps)))
	for i := range h.steps {
		b = numbers(b, h.steps[i].allowed, h.steps[i].denied, h.steps[i].failed)
	}
	return b
}

// pack appends g to b as a block.
func (g *shareGroup) pack(b []byte) []byte {
	return stats.PackBlock(b, func(b []byte) []byte {
		b = rates(stats.PackText(b, g.name), g.calls, g.denied, g.near)
		b = numbers(b, g.keysDenied)
		b = stats.PackText(stats.PackText(b, g.command), g.args)
		for i := range g.spark {
			b = numbers(b, g.spark[i].allowed, g.spark[i].denied)
		}
		return b
	})
}

func (s *shareKeys) pack(b []byte) []byte {
	b = rates(b, s.perSecond, s.omitted)
	b = numbers(b, int64(len(s.keys)))
	for i := range s.keys {
		b = s.keys[i].pack(b)
	}
	return b
}

// pack appends k to b as a block.
func (k *shareKey) pack(b []byte) []byte {
	return stats.PackBlock(b, func(b []byte) []byte {
		b = stats.PackText(numbers(b, int64(k.db)), k.key)
		b = rates(b, k.perSecond)
		b = stats.PackText(stats.PackText(b, k.command), k.args)
		few := k.callers[:min(len(k.callers), maxShareCallers)]
		b = numbers(b, k.retry, k.since, int64(len(few)))
		for i := range few {
			b = stats.PackBlock(b, few[i].pack)
		}
		return b
	})
}

// pack appends the texts of c, cut to maxCallerText bytes, to b.
func (c *Caller) pack(b []byte) []byte {
	for _, text := range []string{string(c.Name), string(c.User), string(c.Lib), c.Addr} {
		b = stats.PackText(b, text[:min(len(text), maxCallerText)])
	}
	return b
}

// ParseShare returns the share whose bytes are b. b may be any bytes: ParseShare checks that texts and lists are within
// their bounds, that rates and numbers are not negative, and that names of commands are words. The result does not
// refer to b. Fields of later releases are ignored.
func ParseShare(b []byte) (*Share, error) {
	r := stats.Unpack(b)
	if r.Number(math.MaxInt32) != shareLevel {
		return nil, errShare
	}
	s := &Share{}
	r.Block(func(b *stats.Packed) { s.kind, s.sick = word(b), b.Number(1) == 1 })
	r.Block(s.now.parse)
	for i := range s.histories {
		r.Block(s.histories[i].parse)
	}
	r.Block(func(b *stats.Packed) {
		b.Block(s.rest.parse)
		b.List(maxShareGroups, func(b *stats.Packed) {
			var g shareGroup
			g.parse(b)
			s.groups = append(s.groups, g)
		})
	})
	for _, keys := range []*shareKeys{&s.denied, &s.called} {
		r.Block(keys.parse)
	}
	if !r.OK() {
		return nil, errShare
	}
	return s, nil
}

// word returns the next text of b. Characters that do not occur in names of commands and verdicts are a fault.
func word(b *stats.Packed) string {
	text := b.Text(maxWord)
	for i := range len(text) {
		if c := text[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-' || c == '|') {
			b.Fault()
			return ""
		}
	}
	return text
}

func (n *shareNow) parse(b *stats.Packed) {
	n.calls, n.denied, n.failed = b.Rate(), b.Rate(), b.Rate()
	n.p99, n.clients, n.keysDenied, n.repeats = b.Number(maxFigure), b.Number(maxFigure), b.Number(maxFigure), b.Number(maxFigure)
	b.List(maxCounts, func(b *stats.Packed) {
		n.reservations = append(n.reservations, Count{Name: word(b), N: b.Number(maxFigure)})
	})
}

// maxFigure is the maximum of a number in a share, so that the sum over all servers does not
// overflow.
const maxFigure = 1 << 50

func (h *shareHistory) parse(b *stats.Packed) {
	h.since = time.Duration(b.Number(MaxSpan*1000)) * time.Millisecond
	for range b.Number(maxShareSteps) {
		h.steps = append(h.steps, step{
			allowed: uint32(b.Number(math.MaxUint32)), denied: uint32(b.Number(math.MaxUint32)), failed: uint32(b.Number(math.MaxUint32)),
		})
		if !b.OK() {
			return
		}
	}
}

func (g *shareGroup) parse(b *stats.Packed) {
	g.name, g.calls, g.denied, g.near = b.Text(maxGroupName), b.Rate(), b.Rate(), b.Rate()
	g.keysDenied, g.command, g.args = b.Number(maxFigure), word(b), b.Text(stats.MaxSeenArgs)
	for i := range g.spark {
		g.spark[i] = groupTime{allowed: uint32(b.Number(math.MaxUint32)), denied: uint32(b.Number(math.MaxUint32))}
	}
}

func (s *shareKeys) parse(b *stats.Packed) {
	s.perSecond, s.omitted = b.Rate(), b.Rate()
	b.List(maxShareKeys, func(b *stats.Packed) {
		k := shareKey{keyName: keyName{int(b.Number(math.MaxInt32)), b.Text(maxSeenKey)}, perSecond: b.Rate(), command: word(b), args: b.Text(stats.MaxSeenArgs)}
		k.retry, k.since = b.Number(maxFigure), b.Number(maxFigure)
		b.List(maxShareCallers, func(b *stats.Packed) {
			k.callers = append(k.callers, Caller{
				Name: Key(b.Text(maxCallerText)), User: Key(b.Text(maxCallerText)), Lib: Key(b.Text(maxCallerText)), Addr: b.Text(maxCallerText),
			})
		})
		s.keys = append(s.keys, k)
	})
}
