package clause

import (
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/resp"
)

// CheckToken checks text, the argument of the option ID. The error is "" on success.
func CheckToken(text []byte) resp.Error {
	if len(text) == 0 || len(text) > idempotency.MaxToken {
		return resp.ErrTokenLength
	}
	return ""
}
