package rdb

// plain reads a list or a set: a sequence of strings.
func (v *values) plain() error {
	return v.each(func() error {
		name, err := v.next()
		if err != nil {
			return err
		}
		return v.add(Element{Name: name})
	})
}

// plainHash reads a hash: fields and values alternately.
func (v *values) plainHash() error {
	return v.each(func() error { return v.pair(0) })
}

// sortedSet and sortedSetText read a sorted set whose scores are binary or text.
func (v *values) sortedSet() error     { return v.scored(v.double) }
func (v *values) sortedSetText() error { return v.scored(v.doubleText) }

// scored reads a sorted set: each member, and then its score by the function score.
func (v *values) scored(score func() (float64, error)) error {
	return v.each(func() error {
		name, err := v.next()
		if err != nil {
			return err
		}
		s, err := score()
		if err != nil {
			return err
		}
		return v.addScored(name, s)
	})
}

// quicklist reads a list whose nodes are ziplists.
func (v *values) quicklist() error {
	return v.each(func() error { return v.packedForm(newZiplist, alone) })
}

// quicklist2 reads a list whose nodes are listpacks, or single elements that are too long for a
// listpack.
func (v *values) quicklist2() error {
	return v.each(func() error {
		container, err := v.count()
		switch {
		case err != nil:
			return err
		case container == 2:
			return v.packedForm(newListpack, alone)
		case container != 1:
			return corrupt("node %d of a quicklist", container)
		}
		if err := v.another(); err != nil {
			return err
		}
		name, err := v.next()
		if err != nil {
			return err
		}
		return v.add(Element{Name: name})
	})
}
