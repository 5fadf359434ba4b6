package collection

import (
	"encoding/binary"
	"math"
)

// Apply replays delta: see [Hash.Apply]. The list may have holes afterwards: see [List.Whole].
func (l *List) Apply(delta []byte) error {
	if len(delta) == 0 {
		return nil
	}
	start, end, err := checkListDelta(delta)
	if err != nil {
		return err
	}
	if l.tree == nil && end-start <= flatElements {
		if l.applyFlat(delta, start, end) {
			return nil
		}
	}
	if l.tree == nil {
		l.growFlat()
	}
	if delta[0] == replacesAll {
		l.Drop()
		l.tree.Clear()
		l.bytes, l.cost = 0, 0
	}
	for b := delta[listDeltaHeader:]; len(b) > 0; {
		position, value, rest, _ := cutPlaced(b)
		b = rest
		if position < start || position >= end {
			continue
		}
		l.setTree(position, own(value))
	}
	l.boundTree(start, end)
	return nil
}

// applyFlat does what Apply does if the list is small and remains small. start and end are the
// bounds in delta. If the list would become large, applyFlat returns false and changes nothing.
func (l *List) applyFlat(delta []byte, start, end int64) bool {
	var values [flatElements][]byte
	if delta[0] == keepsInside && l.Len() > 0 {
		position := l.start
		l.flatRange(0, l.Len(), func(value []byte) bool {
			if position >= start && position < end {
				values[position-start] = value
			}
			position++
			return true
		})
	}
	for b := delta[listDeltaHeader:]; len(b) > 0; {
		position, value, rest, _ := cutPlaced(b)
		b = rest
		if position >= start && position < end {
			values[position-start] = value
		}
	}
	if start == end {
		l.start, l.end = start, end
		l.flatForm.load(nil)
		return true
	}
	b := make([]byte, 0, flatBytes)
	b = binary.LittleEndian.AppendUint64(b, uint64(start))
	b = append(b, byte(end-start))
	holes := int64(0)
	for _, value := range values[:end-start] {
		if value == nil {
			holes++
			continue
		}
		b = appendValue(appendHoles(b, holes), value)
		holes = 0
		if len(b) > flatBytes {
			return false
		}
	}
	b = appendHoles(b, holes)
	if len(b) > flatBytes {
		return false
	}
	l.start, l.end = start, end
	l.flatForm.take(b)
	return true
}

// checkListDelta returns start and end, the bounds of the list in delta. The error is ErrCorrupt if
// delta is not the delta of a list.
func checkListDelta(delta []byte) (start, end int64, err error) {
	if len(delta) < listDeltaHeader || delta[0] != keepsInside && delta[0] != replacesAll {
		return 0, 0, ErrCorrupt
	}
	start = int64(binary.LittleEndian.Uint64(delta[1:]))
	end = int64(binary.LittleEndian.Uint64(delta[9:]))
	if start < -farthest || end > farthest || start > end || uint64(end)-uint64(start) > math.MaxInt32 {
		return 0, 0, ErrCorrupt
	}
	for b := delta[listDeltaHeader:]; len(b) > 0; {
		_, _, rest, ok := cutPlaced(b)
		if !ok {
			return 0, 0, ErrCorrupt
		}
		b = rest
	}
	return start, end, nil
}

// cutPlaced returns the position and the value at the beginning of b, a part of a delta, and the
// rest of b. ok is false if b does not begin with a position and a value.
func cutPlaced(b []byte) (position int64, value, rest []byte, ok bool) {
	position, n := binary.Varint(b)
	if n <= 0 {
		return 0, nil, nil, false
	}
	value, rest, ok = cut(b[n:])
	return position, value, rest, ok
}

// CheckList returns [ErrCorrupt] unless flat has the flat bytes of a list without holes. flat may
// be any bytes.
func CheckList(flat []byte) error {
	if len(flat) == 0 {
		return nil
	}
	if len(flat) <= 8 {
		return ErrCorrupt
	}
	start := int64(binary.LittleEndian.Uint64(flat))
	n, b, ok := cutUvarint(flat[8:])
	if !ok || n == 0 || n > uint64(len(b)) || start < -farthest || start > farthest {
		return ErrCorrupt
	}
	for range n {
		var holes uint64
		if _, holes, b, ok = cutValue(b); !ok || holes > 0 {
			return ErrCorrupt
		}
	}
	if len(b) > 0 {
		return ErrCorrupt
	}
	return nil
}
