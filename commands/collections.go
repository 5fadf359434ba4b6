package commands

import (
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/resp"
)

// elementsError is what a client is told of an error of [Collections].
func (c *Ctx) elementsError(err error) resp.Error {
	if errors.Is(err, collection.ErrFull) {
		return resp.Error("ERR the collection is full, at most " + strconv.FormatInt(c.server.Limits().MaxElements, 10) + " elements")
	}
	if errors.Is(err, errLongReply) {
		return tooLong(c.W)
	}
	var known elementError
	if errors.As(err, &known) {
		return resp.Error(known)
	}
	return storeError(err)
}

// wroteElements replies what f writes, or why a write did not happen.
func (c *Ctx) wroteElements(err error, f func(w *resp.Writer)) {
	switch {
	case c.left(err):
	case err != nil:
		c.Fail(c.elementsError(err))
	default:
		f(c.W)
	}
}

// elementError carries a reply through a function of the store.
type elementError resp.Error

// Error implements error.
func (e elementError) Error() string { return string(e) }
