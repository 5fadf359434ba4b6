package elements

import (
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// ElementsError returns the reply for err. err is the error of a method of the store, such as
// WriteList, that calls a function with a collection.
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

// WroteElements ends a command that has written a collection. If err is nil, f writes the reply. If
// err says that the command has to leave its event loop, the command runs again in the background.
// Otherwise the reply is the error.
func WroteElements(c *command.Call, err error, f func(w *resp.Writer)) {
	switch {
	case c.LeftLoop(err):
	case err != nil:
		c.Fail(ElementsError(c, err))
	default:
		f(c.W)
	}
}
