package elements

import (
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// ElementsError is what a client is told of an error of a collection in the store.
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

// WroteElements replies what f writes, or why a write did not happen.
func WroteElements(c *command.Call, err error, f func(w *resp.Writer)) {
	switch {
	case c.LeftLoop(err):
	case err != nil:
		c.Fail(ElementsError(c, err))
	default:
		f(c.W)
	}
}
