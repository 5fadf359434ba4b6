package rdb

import (
	"fmt"
	"math"
)

// values reads the values of keys.
type values struct {
	texts
	parts
	// most is the maximum number of elements, see [Limits].
	most uint64
	// name and blob are buffers that are reused for the next key.
	name, blob []byte
}

// field is what follows the first string of an element.
type field uint8

const (
	alone      field = iota // an element of a list, a member of a set
	withValue               // a field and a value
	withScore               // a member and a score
	withExpiry              // a field, a value, and when it expires
)

// latest is the latest expiry of a field that Redis allows, in milliseconds since 1970.
const latest = 1<<48 - 1

// string reads a string and passes it to the visitor.
func (v *values) string(key *Key) (err error) {
	key.Kind = String
	v.blob, err = v.text(v.blob[:0])
	if err == nil && v.visitor.Value != nil {
		err = v.visitor.Value(key, Part{Text: v.blob, First: true, Last: true})
	}
	v.blob = reusable(v.blob)
	return err
}

// next reads a string that is part of an element.
func (v *values) next() ([]byte, error) {
	text, err := v.text(v.room())
	return v.kept(text), err
}

// another counts an element that follows, and returns an error if that is one too many.
func (v *values) another() error {
	if v.n >= v.most {
		return fmt.Errorf("%w: more than %d elements", ErrLimit, v.most)
	}
	return nil
}

// each reads a number, and calls one that many times, once for each element.
func (v *values) each(one func() error) error {
	n, err := v.count()
	if err != nil {
		return err
	}
	if n > v.most {
		return fmt.Errorf("%w: %d elements, the most allowed are %d", ErrLimit, n, v.most)
	}
	for range n {
		if err := one(); err != nil {
			return err
		}
	}
	return nil
}

// pair reads a field and a value.
func (v *values) pair(expire int64) error {
	name, err := v.next()
	if err != nil {
		return err
	}
	value, err := v.next()
	if err != nil {
		return err
	}
	return v.add(Element{Name: name, Value: value, Expire: expire})
}

func (v *values) addScored(name []byte, score float64) error {
	if math.IsNaN(score) {
		return corrupt("a score that is NaN")
	}
	return v.add(Element{Name: name, Score: score})
}
