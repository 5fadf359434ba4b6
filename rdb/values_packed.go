package rdb

// packedForm reads a string, opens it as a packed encoding, and adds the elements in it. f
// describes what an element consists of.
func (v *values) packedForm(open func([]byte) (packed, error), f field) (err error) {
	if err := v.flush(false); err != nil { // elements that were collected may have strings that are parts of blob
		return err
	}
	if v.blob, err = v.text(v.blob[:0]); err != nil {
		return err
	}
	p, err := open(v.blob)
	if err != nil {
		return err
	}
	for {
		name, more, err := p.next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := v.packedElement(p, f, name); err != nil {
			return err
		}
	}
	v.blob = reusable(v.blob)
	return nil
}

// packedElement adds the element that begins with name. It reads the other entries of the element
// from p.
func (v *values) packedElement(p packed, f field, name item) error {
	if err := v.another(); err != nil {
		return err
	}
	e := Element{Name: v.entry(name)}
	if f == alone {
		return v.add(e)
	}
	second, err := following(p)
	if err != nil {
		return err
	}
	if f == withScore {
		score := float64(second.number)
		if second.isText {
			if score, err = parseScore(second.text); err != nil {
				return err
			}
		}
		return v.addScored(e.Name, score)
	}
	e.Value = v.entry(second)
	if f == withExpiry {
		expire, err := following(p)
		if err != nil {
			return err
		}
		if expire.isText || expire.number < 0 || expire.number > latest {
			return corrupt("a field without an instant at which it expires")
		}
		e.Expire = expire.number
	}
	return v.add(e)
}

// following returns the next entry of p. The end of p is an error.
func following(p packed) (item, error) {
	e, more, err := p.next()
	if err == nil && !more {
		err = corrupt("an element without its last entry")
	}
	return e, err
}

// entry returns the item e as a string.
func (v *values) entry(e item) []byte {
	if e.isText {
		return e.text
	}
	return v.decimals(e.number)
}
