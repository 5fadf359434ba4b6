package sandbox

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// TestFieldsOfTheInterpreterHaveTheTypesAssumed checks the types of the interpreter's unexported
// fields that this package accesses.
func TestFieldsOfTheInterpreterHaveTheTypesAssumed(t *testing.T) {
	for _, c := range []struct {
		in   reflect.Type
		name string
		want reflect.Type
	}{
		{reflect.TypeFor[glua.LState](), "uvcache", reflect.TypeFor[*glua.Upvalue]()},
		{reflect.TypeFor[glua.LState](), "hasErrorFunc", reflect.TypeFor[bool]()},
		{reflect.TypeFor[glua.Upvalue](), "next", reflect.TypeFor[*glua.Upvalue]()},
	} {
		field, ok := c.in.FieldByName(c.name)
		require.True(t, ok)
		require.Equal(t, c.want, field.Type)
	}
	text := glua.LString("slot")
	require.Equal(t, glua.LValue(text), value.StringAt(&text))
}
