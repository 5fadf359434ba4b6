package compiler

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// MaxSource is the longest source that Compile takes, in bytes: the time to
// compile grows with its square in the worst case, and is 0.2 s at this length.
const MaxSource = 64 << 10

// parseChunk checks and parses source that may be hostile. Its errors read as
// those of Lua, "name:line: message".
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

// ErrTooLong refuses source of more than [MaxSource] bytes.
func ErrTooLong(name string) error {
	return fmt.Errorf("%s: chunk is too long, at most %d bytes", name, MaxSource)
}

// syntaxError spells what the parser raised.
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
	// maxLevels is how deep brackets and blocks may nest, and how long a chain of
	// right-associative or unary operators may be: LUAI_MAXCCALLS of Lua.
	maxLevels = 200
	// maxChain is how many operators one expression may have: the compiler's time
	// grows with the square of it.
	maxChain = 2000
)

// scanner state for scan.
type levels struct {
	open  int
	right int
	chain int
}

// scan looks at the tokens of source before the parser and the compiler do,
// which recurse over whatever they are given.
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
		// Every elseif has a then of its own.
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
