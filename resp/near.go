package resp

import (
	"strconv"
	"strings"
)

// nearMost is the maximum number of bytes of an argument in an error.
const nearMost = 64

// SyntaxNear returns the syntax error of commands that Redis does not have: it names the argument
// at which parsing failed. Redis' own commands reply [ErrSyntax], whose text clients compare. A
// client may send any argument, so at most 64 bytes of it are shown, and each that is not printable
// ASCII as \xNN.
func SyntaxNear(arg []byte) Error {
	return Error(appendQuoted([]byte(ErrSyntax+" near "), arg))
}

// Argument returns the error is about a value, such as [ErrNotInteger], for a command that Redis
// does not have. It adds which argument has the value, shown as [SyntaxNear] does, and what the
// value must be, such as "from 2 to 1000".
func Argument(is Error, name string, value []byte, must string) Error {
	text := appendQuoted([]byte(is+": "+Error(name)+" is "), value)
	return Error(append(append(text, ", must be "...), must...))
}

// WithUsage adds the usage of the command or clause to an error. An empty error stays empty.
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

// Bare removes what [Argument] and [WithUsage] have added to an error.
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
