package resp

import (
	"strconv"
	"strings"
)

// nearMost is the maximum number of bytes of an argument that an error text shows.
const nearMost = 64

// SyntaxNear returns the syntax error for a command that Redis does not have. The text shows arg,
// the argument at which parsing failed. The commands of Redis reply [ErrSyntax] instead, since
// clients compare its text. arg may be any bytes: at most 64 of them are shown, and bytes that are
// not printable ASCII as \xNN.
func SyntaxNear(arg []byte) Error {
	return Error(appendQuoted([]byte(ErrSyntax+" near "), arg))
}

// Argument adds details to an error, is, such as [ErrNotInteger], for a command that Redis does not
// have. The details are the name of the argument, its value in the form of [SyntaxNear], and what
// the value must be, such as "from 2 to 1000".
func Argument(is Error, name string, value []byte, must string) Error {
	text := appendQuoted([]byte(is+": "+Error(name)+" is "), value)
	return Error(append(append(text, ", must be "...), must...))
}

// WithUsage adds the usage of a command or clause to an error, is, and returns the result. An empty
// error stays empty.
func WithUsage(is Error, usage string) Error {
	if is == "" {
		return ""
	}
	return is + usagePrefix + Error(usage)
}

// usagePrefix is the text between an error and the usage.
const usagePrefix = "; usage: "

// IsArgument reports whether is begins with "ERR value is", as [ErrNotInteger] does, and [Argument]
// or [WithUsage] has added details.
func IsArgument(is Error) bool {
	return strings.HasPrefix(string(is), "ERR value is") && Bare(is) != is
}

// Bare returns the error is without what [WithUsage] has added. From [ErrNotInteger],
// [ErrNotPositive], [ErrRateTooHigh], [ErrNoZone] and [ErrNoStart] it also removes all that follows
// ": ", which [Argument] has added.
func Bare(is Error) Error {
	text, _, _ := strings.Cut(string(is), usagePrefix)
	for _, bare := range [...]Error{ErrNotInteger, ErrNotPositive, ErrRateTooHigh, ErrNoZone, ErrNoStart} {
		if strings.HasPrefix(text, string(bare)+": ") {
			return bare
		}
	}
	return Error(text)
}

// appendQuoted appends arg in single quotes to text, as SyntaxNear describes.
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
