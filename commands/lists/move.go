package lists

import (
	"bytes"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

func lmove(c storeCall) {
	if m, err := parseMove(c.Args); err != "" {
		c.Fail(err)
	} else {
		moveElement(c, m)
	}
}

func rpoplpush(c storeCall) { moveElement(c, listMove{toFront: true}) }

// listMove says from which end of a list an element is moved, and to which end of another list.
type listMove struct{ fromFront, toFront bool }

// parseMove parses the ends in args, the arguments of LMOVE or BLMOVE. The error is "" on success.
func parseMove(args [][]byte) (m listMove, err resp.Error) {
	for i, front := range []*bool{&m.fromFront, &m.toFront} {
		if *front = arg.IsWord(args[3+i], "LEFT"); !*front && !arg.IsWord(args[3+i], "RIGHT") {
			return m, resp.ErrSyntax
		}
	}
	return m, ""
}

// moveElement moves an element from the list at the first argument to the one at the second, which
// may be the same, at one instant, and replies with the element, or with null if there is none.
func moveElement(c storeCall, m listMove) {
	from, to, db := c.Args[1], c.Args[2], c.Client.Selected()
	if !c.Client.Exclusive { // in a transaction or script the keys are locked already
		c.Refs = append(c.Refs[:0], env.KeyRef{DB: db, Key: from}, env.KeyRef{DB: db, Key: to})
		c.Store.Lock(c.Refs, nil)
		defer c.Store.Unlock()
	}
	switch value, found, err := m.move(c.Store, db, from, to); {
	case err != nil:
		c.Fail(elements.ElementsError(c.Call, err))
	case !found:
		c.W.Null()
	default:
		c.W.Bulk(value)
	}
}

// move moves an element from one list to another, and returns a copy of the element. The parameters
// from and to are the keys. found is false if there is none. Both keys must be locked.
func (m listMove) move(st store, db int, from, to []byte) (value []byte, found bool, err error) {
	if value, found, err = m.peek(st, db, from, to); found && err == nil {
		err = m.transfer(st, db, from, to, value)
	}
	return value, found, err
}

// peek returns a copy of the element that is to be moved; found is false if there is none. As in
// Redis it checks the type of the other key only if there is an element.
func (m listMove) peek(st store, db int, from, to []byte) (value []byte, found bool, err error) {
	found, err = st.ReadList(db, from, func(l *collection.List) {
		i := l.Len() - 1
		if m.fromFront {
			i = 0
		}
		v, _ := l.At(i)
		value = bytes.Clone(v)
	})
	if found && err == nil {
		_, err = st.ReadList(db, to, func(*collection.List) {})
	}
	return value, found, err
}

// transfer moves the element that peek has returned as value. Between two lists it adds the element
// before it removes it, because only the addition may fail.
func (m listMove) transfer(st store, db int, from, to, value []byte) error {
	take := func(l *collection.List) error {
		popOne(l, m.fromFront)
		return nil
	}
	if bytes.Equal(from, to) {
		return st.WriteList(db, from, func(l *collection.List) error {
			_ = take(l)
			return pushOne(l, m.toFront, value)
		})
	}
	err := st.WriteList(db, to, func(l *collection.List) error { return pushOne(l, m.toFront, value) })
	if err != nil {
		return err
	}
	return st.WriteList(db, from, take)
}
