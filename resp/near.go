package resp

import "strconv"

// nearMost is how many bytes of an argument an error shows.
const nearMost = 64

// SyntaxNear is the syntax error of commands that Redis does not have: it names the
// argument that is in the way. Redis' own commands answer [ErrSyntax], whose text
// clients compare. The argument is whatever a client sent, so at most 64 bytes of it
// are shown, and each that is not printable ASCII as \xNN.
func SyntaxNear(arg []byte) Error {
	cut := ""
	if len(arg) > nearMost {
		arg, cut = arg[:nearMost], "..."
	}
	text := []byte(ErrSyntax + " near '")
	for _, c := range arg {
		switch {
		case c == '\'' || c == '\\':
			text = append(text, '\\', c)
		case c < ' ' || c > '~':
			text = append(text, '\\', 'x')
			text = append(text, strconv.FormatUint(uint64(c)|0x100, 16)[1:]...)
		default:
			text = append(text, c)
		}
	}
	return Error(append(append(text, cut...), '\''))
}
