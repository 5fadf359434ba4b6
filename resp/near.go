package resp

import (
	"strconv"
	"strings"
)

// nearMost is how many bytes of an argument an error shows.
const nearMost = 64

// SyntaxNear is the syntax error of commands that Redis does not have: it names the
// argument that is in the way. Redis' own commands answer [ErrSyntax], whose text
// clients compare. The argument is whatever a client sent, so at most 64 bytes of it
// are shown, and each that is not printable ASCII as \xNN.
func SyntaxNear(arg []byte) Error {
	return Error(appendQuoted([]byte(ErrSyntax+" near "), arg))
}

// Argument is is, an error about a value such as [ErrNotInteger], of a command that Redis does
// not have. It says which argument has the value, shown as [SyntaxNear] does, and what it must
// be: "from 2 to 1000".
func Argument(is Error, name string, value []byte, must string) Error {
	text := appendQuoted([]byte(is+": "+Error(name)+" is "), value)
	return Error(append(append(text, ", must be "...), must...))
}

// WithUsage adds to an error how the command or the clause is written. An empty error stays.
func WithUsage(is Error, usage string) Error {
	if is == "" {
		return ""
	}
	return is + usagePrefix + Error(usage)
}

const usagePrefix = "; usage: "

// IsArgument reports whether [Argument] has made the error of [ErrNotInteger] or [ErrNotPositive].
func IsArgument(is Error) bool {
	return strings.HasPrefix(string(is), "ERR value is") && Bare(is) != is
}

// Bare takes from an error what [Argument] and [WithUsage] have added to it.
func Bare(is Error) Error {
	text, _, _ := strings.Cut(string(is), usagePrefix)
	for _, bare := range [...]Error{ErrNotInteger, ErrNotPositive, ErrRateTooHigh} {
		if strings.HasPrefix(text, string(bare)+": ") {
			return bare
		}
	}
	return Error(text)
}

// appendQuoted appends an argument in single quotes.
func appendQuoted(text, arg []byte) []byte {
	cut := ""
	if len(arg) > nearMost {
		arg, cut = arg[:nearMost], "..."
	}
	text = append(text, '\'')
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
	return append(append(text, cut...), '\'')
}
