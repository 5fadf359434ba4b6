package rdb

import "strconv"

// partElements is the maximum number of elements of a part. That many elements take 36 KiB.
const partElements = 512

// parts collects the elements of a value and passes them to the visitor in parts. The strings of
// the elements are in an arena of [piece] bytes, or in memory of their own if they do not fit.
type parts struct {
	visitor  *Visitor
	key      *Key
	elements []Element
	arena    []byte
	// apart is the number of bytes of the collected elements that are outside of the arena.
	apart int
	// n is the number of elements of the value that were added, and sent is true if some of them
	// have been passed on.
	n    uint64
	sent bool
}

// begin prepares p for the elements of the value of key, and drops elements that were collected
// before.
func (p *parts) begin(key *Key) {
	if p.arena == nil {
		p.arena, p.elements = make([]byte, 0, piece), make([]Element, 0, partElements)
	}
	p.key, p.n, p.sent = key, 0, false
	p.empty()
}

// empty forgets the collected elements and reuses their memory.
func (p *parts) empty() {
	clear(p.elements) // clear frees large strings
	p.arena, p.elements, p.apart = p.arena[:0], p.elements[:0], 0
}

// room returns an empty slice with the free memory of the arena. The caller appends the next string
// to it and passes the result to kept. If the string does not fit, append allocates other memory.
func (p *parts) room() []byte { return p.arena[len(p.arena):] }

// kept keeps text, a string that was appended to room, and returns it.
func (p *parts) kept(text []byte) []byte {
	if free := cap(p.arena) - len(p.arena); len(text) <= free {
		p.arena = p.arena[:len(p.arena)+len(text)]
	} else {
		p.apart += len(text)
	}
	return text[:len(text):len(text)]
}

// decimals returns n as a decimal string, which is kept.
func (p *parts) decimals(n int64) []byte {
	return p.kept(strconv.AppendInt(p.room(), n, 10))
}

// add adds the next element of the value, and passes on a part if it is full. The memory of the
// strings is then reused. So add must be called after all strings of the element were read, and
// before the first string of the next element is read.
func (p *parts) add(e Element) error {
	p.elements = append(p.elements, e)
	p.n++
	if len(p.elements) < partElements && p.apart < piece && cap(p.arena)-len(p.arena) >= piece/8 {
		return nil
	}
	return p.flush(false)
}

// flush passes the collected elements to the visitor as a part, if there are any or last is true.
func (p *parts) flush(last bool) error {
	if len(p.elements) == 0 && !last {
		return nil
	}
	part := Part{Elements: p.elements, First: !p.sent, Last: last}
	p.sent = true
	var err error
	if p.visitor.Value != nil {
		err = p.visitor.Value(p.key, part)
	}
	p.empty()
	return err
}

// end ends a value: it passes on the last part. An empty collection is skipped, as in Redis,
// because no server has one.
func (p *parts) end() error {
	if p.n > 0 {
		return p.flush(true)
	}
	return p.visitor.skipped("empty "+p.key.Kind.String(), p.key)
}

// skipped calls v.Skipped, if it is not nil. what describes the skipped data; key is its key, or
// nil if it belongs to no key.
func (v *Visitor) skipped(what string, key *Key) error {
	if v.Skipped == nil {
		return nil
	}
	return v.Skipped(Skipped{What: what, Key: key})
}
