package elements

import (
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// ElementsError returns the reply for an error of a collection in the store.
func ElementsError(c *command.Call, err error) resp.Error {
	if errors.Is(err, collection.ErrFull) {
		return resp.Error("ERR the collection is full, at most " + strconv.FormatInt(c.Server.Limits().MaxElements, 10) + " elements")
	}
	if errors.Is(err, command.ErrLongReply) {
		return command.TooLong(c.W)
	}
	var known command.ElementError
	if errors.As(err, &known) {
		return resp.Error(known)
	}
	return command.StoreError(err)
}

// WroteElements writes the reply with f, or the error of a failed write if err is set.
func WroteElements(c *command.Call, err error, f func(w *resp.Writer)) {
	switch {
	case c.LeftLoop(err):
	case err != nil:
		c.Fail(ElementsError(c, err))
	default:
		f(c.W)
	}
}
