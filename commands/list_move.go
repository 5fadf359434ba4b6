package commands

import (
	"bytes"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/resp"
)

func lmove(c *Ctx) {
	var front [2]bool
	for i, a := range c.Args[3:] {
		front[i] = isWord(a, "LEFT")
		if !front[i] && !isWord(a, "RIGHT") {
			c.Fail(resp.ErrSyntax)
			return
		}
	}
	c.moveElement(front[0], front[1])
}

func rpoplpush(c *Ctx) { c.moveElement(false, true) }

// moveElement moves an element from one list to another, or in one, at one instant.
func (c *Ctx) moveElement(fromFront, toFront bool) {
	from, to := c.Args[1], c.Args[2]
	if !c.S.exclusive { // else the keys are held already
		db := c.S.selected()
		c.refs = append(c.refs[:0], KeyRef{DB: db, Key: from}, KeyRef{DB: db, Key: to})
		c.Store.Hold(c.refs, nil)
		defer c.Store.Release()
	}
	value, found, err := c.peekElement(from, to, fromFront)
	switch {
	case err != nil:
		c.Fail(c.elementsError(err))
	case !found:
		c.W.Null()
	default:
		if err = c.transfer(from, to, value, fromFront, toFront); err != nil {
			c.Fail(c.elementsError(err))
			return
		}
		c.W.Bulk(value)
	}
}

// peekElement returns a copy of the element that is to be moved. The destination is
// looked at only if there is one, as in Redis.
func (c *Ctx) peekElement(from, to []byte, front bool) (value []byte, found bool, err error) {
	db := c.S.selected()
	found, err = c.Store.ReadList(db, from, func(l *collection.List) {
		i := l.Len() - 1
		if front {
			i = 0
		}
		v, _ := l.At(i)
		value = bytes.Clone(v)
	})
	if found && err == nil {
		_, err = c.Store.ReadList(db, to, func(*collection.List) {})
	}
	return value, found, err
}

// transfer does what peekElement has found possible: the element is added first, which
// alone may fail.
func (c *Ctx) transfer(from, to, value []byte, fromFront, toFront bool) error {
	db := c.S.selected()
	take := func(l *collection.List) error {
		popOne(l, fromFront)
		return nil
	}
	if bytes.Equal(from, to) {
		return c.Store.WriteList(db, from, func(l *collection.List) error {
			_ = take(l)
			return pushOne(l, toFront, value)
		})
	}
	err := c.Store.WriteList(db, to, func(l *collection.List) error { return pushOne(l, toFront, value) })
	if err != nil {
		return err
	}
	return c.Store.WriteList(db, from, take)
}
