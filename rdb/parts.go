package rdb

import "strconv"

// partElements is the maximum number of elements of a part. They take 36 KiB.
const partElements = 512

// parts collects elements and passes them to the visitor in parts. Their strings are in an arena of
// [piece] bytes, or in memory of their own if they do not fit.
type parts struct {
	visitor  *Visitor
	key      *Key
	elements []Element
	arena    []byte
	// apart is the number of bytes of the collected elements outside of the arena.
	apart int
	// n is the number of collected elements of the value, and sent says that some of them have been
	// passed on.
	n    uint64
	sent bool
}

// begin begins a value.
func (p *parts) begin(key *Key) {
	if p.arena == nil {
		p.arena, p.elements = make([]byte, 0, piece), make([]Element, 0, partElements)
	}
	p.key, p.n, p.sent = key, 0, false
	p.empty()
}

func (p *parts) empty() {
	clear(p.elements) // frees large strings
	p.arena, p.elements, p.apart = p.arena[:0], p.elements[:0], 0
}

// room returns the place to which the next string may be appended. If it does not fit, append
// allocates other memory. The caller passes the result to kept.
func (p *parts) room() []byte { return p.arena[len(p.arena):] }

// kept keeps a string that was appended to room.
func (p *parts) kept(text []byte) []byte {
	if free := cap(p.arena) - len(p.arena); len(text) <= free {
		p.arena = p.arena[:len(p.arena)+len(text)]
	} else {
		p.apart += len(text)
	}
	return text[:len(text):len(text)]
}

// decimals returns a number as a string.
func (p *parts) decimals(n int64) []byte {
	return p.kept(strconv.AppendInt(p.room(), n, 10))
}

// add adds the next element. It must not be called between two strings of one element, because the
// memory of the strings is reused when a part is full.
func (p *parts) add(e Element) error {
	p.elements = append(p.elements, e)
	p.n++
	if len(p.elements) < partElements && p.apart < piece && cap(p.arena)-len(p.arena) >= piece/8 {
		return nil
	}
	return p.flush(false)
}

// flush passes on the collected elements, if there are any or last is set.
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

// end ends a value. No server has empty collections, and Redis skips one too.
func (p *parts) end() error {
	if p.n > 0 {
		return p.flush(true)
	}
	return p.visitor.skipped("empty "+p.key.Kind.String(), p.key)
}

func (v *Visitor) skipped(what string, key *Key) error {
	if v.Skipped == nil {
		return nil
	}
	return v.Skipped(Skipped{What: what, Key: key})
}
