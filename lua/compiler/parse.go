package compiler

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// MaxSource is the maximum length in bytes of the source of a script. In the worst case the time to
// compile grows with the square of the length, and is 0.2 s for source of this length.
const MaxSource = 64 << 10

// parseChunk checks source, which may be hostile, and returns its statements. name is the name of
// the chunk in errors, which have the form of Lua's, "name:line: message". parseChunk refuses
// source longer than MaxSource, and compiled code. A panic of the parser becomes an error.
func parseChunk(source []byte, name string) (stmts []ast.Stmt, err error) {
	if len(source) > MaxSource {
		return nil, ErrTooLong(name)
	}
	if len(source) > 0 && source[0] == 0x1b {
		return nil, fmt.Errorf("%s: precompiled chunks are not loaded", name)
	}
	defer func() {
		if p := recover(); p != nil {
			stmts, err = nil, errors.New(syntaxError(name, p, source))
		}
	}()
	if err := scan(source, name); err != nil {
		return nil, err
	}
	stmts, err = parse.Parse(bytes.NewReader(source), name)
	if err != nil {
		return nil, errors.New(syntaxError(name, err, source))
	}
	return stmts, nil
}

// ErrTooLong returns the error for a chunk, called name, whose source is longer than [MaxSource].
func ErrTooLong(name string) error {
	return fmt.Errorf("%s: chunk is too long, at most %d bytes", name, MaxSource)
}

// syntaxError returns, in Lua's form, the text of raised, which is an error or a panic of the
// parser.
func syntaxError(name string, raised any, source []byte) string {
	cause, ok := raised.(error)
	if !ok {
		return fmt.Sprintf("%s: %v", name, raised)
	}
	var syntax *parse.Error
	if !errors.As(cause, &syntax) {
		return fmt.Sprintf("%s: %v", name, cause)
	}
	near := "'" + syntax.Token + "'"
	if syntax.Pos.Line == parse.EOF || syntax.Token == "" {
		near = "'<eof>'"
	}
	at := syntax.Pos.Line
	if at == parse.EOF {
		at = 1 + bytes.Count(source, []byte("\n"))
	}
	return fmt.Sprintf("%s:%d: %s near %s", name, at, syntax.Message, near)
}

const (
	// maxLevels is the maximum nesting of brackets and blocks, and the maximum length of a chain of
	// right-associative or unary operators. It is LUAI_MAXCCALLS of Lua.
	maxLevels = 200
	// maxChain is the maximum number of operators in one expression. The compiler takes time that
	// grows with the square of this number.
	maxChain = 2000
)

// levels is the state of scan: the numbers of open brackets and blocks, of right-associative and
// unary operators in the present expression, and of all operators in it.
type levels struct {
	open  int
	right int
	chain int
}

// scan returns an error if the tokens of source exceed maxLevels or maxChain, or if source has a
// lexical error. name is the name of the chunk in messages. scan runs before the parser and the
// compiler, since these recurse without a bound.
func scan(source []byte, name string) error {
	var lexer parse.Lexer
	scanner := parse.NewScanner(bytes.NewReader(source), name)
	var l levels
	for {
		token, err := scanner.Scan(&lexer)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return errors.New(syntaxError(name, err, source))
		}
		if token.Type == parse.EOF {
			return nil
		}
		lexer.PrevTokenType = token.Type
		l.next(token.Type)
		if l.open > maxLevels || l.right > maxLevels || l.chain > maxChain {
			return fmt.Errorf("%s:%d: chunk has too many syntax levels", name, token.Pos.Line)
		}
	}
}

func (l *levels) next(token int) {
	switch token {
	case '(', '{', '[', parse.TFunction, parse.TDo, parse.TThen, parse.TRepeat:
		l.open++
	case ')', '}', ']', parse.TEnd, parse.TUntil, parse.TElseIf:
		// Every elseif is followed by a then, which opens a level.
		l.open--
	}
	switch token {
	case parse.T2Comma, '^', parse.TNot, '-', '#':
		l.right++
		l.chain++
	case '+', '*', '/', '%', '<', '>', parse.TEqeq, parse.TNeq, parse.TLte, parse.TGte, parse.TAnd, parse.TOr, '(', '[', '.', ':':
		l.chain++
	case ',', ';', '=', parse.TLocal, parse.TReturn, parse.TIf, parse.TElseIf, parse.TElse, parse.TEnd, parse.TWhile, parse.TFor,
		parse.TThen, parse.TDo, parse.TFunction, parse.TRepeat, parse.TUntil, parse.TBreak:
		l.right, l.chain = 0, 0
	}
}
