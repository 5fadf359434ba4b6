package rdb

import (
	"fmt"
	"math"
)

// values reads the values of keys and passes them to the visitor.
type values struct {
	texts
	parts
	// most is the maximum number of elements of a collection: see [Limits].
	most uint64
	// name is the buffer for names of keys, and blob the buffer for strings and packed encodings.
	name, blob []byte
}

// field describes what follows the first string of an element.
type field uint8

const (
	alone      field = iota // nothing follows: the string is an element of a list, or a member of a set
	withValue               // a value follows: the string is a field
	withScore               // a score follows: the string is a member
	withExpiry              // a value and its expiry follow: the string is a field
)

// latest is the latest expiry of a field that Redis allows, in milliseconds since 1970.
const latest = 1<<48 - 1

// string reads the value of key, which is a string, and passes it to the visitor.
func (v *values) string(key *Key) (err error) {
	key.Kind = String
	v.blob, err = v.text(v.blob[:0])
	if err == nil && v.visitor.Value != nil {
		err = v.visitor.Value(key, Part{Text: v.blob, First: true, Last: true})
	}
	v.blob = reusable(v.blob)
	return err
}

// next reads a string that is a part of an element. The string is valid until the part is passed
// on.
func (v *values) next() ([]byte, error) {
	text, err := v.text(v.room())
	return v.kept(text), err
}

// another returns an error if the value already has the maximum number of elements. It is called
// before an element of a packed encoding or of a node, whose number is not known in advance.
func (v *values) another() error {
	if v.n >= v.most {
		return fmt.Errorf("%w: more than %d elements", ErrLimit, v.most)
	}
	return nil
}

// each reads the number of elements and calls the function one for each of them. The error says
// that there are too many elements, or is the error of the function.
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

// pair reads a field and its value, and adds them as an element. expire is the expiry of the field,
// as in [Element].
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

// addScored adds a member and its score. NaN is an error.
func (v *values) addScored(name []byte, score float64) error {
	if math.IsNaN(score) {
		return corrupt("a score that is NaN")
	}
	return v.add(Element{Name: name, Score: score})
}
