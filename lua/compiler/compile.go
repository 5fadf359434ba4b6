package compiler

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/cellserver/cellserver/resp"
)

// ChunkName is what Redis calls a script in its messages.
const ChunkName = "user_script"

// compileErrorPrefix opens every error of Compile that is about the text.
const compileErrorPrefix = "ERR Error compiling script (new function): "

// chunk is compiled source.
type chunk struct {
	proto *glua.FunctionProto
	flags Flags
	// plainKeys says that KEYS and ARGV are only read, at constant places, so
	// that their tables can be used again by the next run.
	plainKeys bool
}

// Flags are what a script says about itself in a first line "#!lua flags=a,b".
type Flags struct {
	// Declared says that there is such a line.
	Declared bool
	// NoWrites is a promise not to write.
	NoWrites bool
	// AllowOOM, AllowStale, NoCluster and AllowCrossSlotKeys are for servers with
	// a bound on memory, with replicas or with a cluster.
	AllowOOM, AllowStale, NoCluster, AllowCrossSlotKeys bool
}

// Flags returns what the script's first line declares.
func (s *Script) Flags() Flags { return s.chunk.flags }

// Declared is Flags of a script that has yet to be compiled; of one whose first line is
// wrong it is nothing.
func Declared(source []byte) Flags {
	flags, _, err := readShebang(source)
	if err != nil {
		return Flags{}
	}
	return flags
}

// Compile reads a script. An error is a complete error reply. Time and memory are
// bounded by [MaxSource]; it is still milliseconds for the worst of sources, so
// long ones are better compiled beside an event loop.
func Compile(source []byte) (*Script, error) {
	if len(source) > MaxSource {
		return nil, resp.Error(fmt.Sprintf("%suser_script: script is too long, at most %d bytes", compileErrorPrefix, MaxSource))
	}
	flags, body, err := readShebang(source)
	if err != nil {
		return nil, err
	}
	stmts, err := parseChunk(body, ChunkName)
	if err != nil {
		return nil, resp.Error(compileErrorPrefix + err.Error())
	}
	found, plain := analyse(stmts)
	proto, err := generate(stmts, ChunkName)
	if err != nil {
		return nil, resp.Error(compileErrorPrefix + err.Error())
	}
	return &Script{
		sha:    SHA(source),
		source: bytes.Clone(source),
		chunk:  chunk{proto: proto, flags: flags, plainKeys: plain},
		facts:  found,
	}, nil
}

// readShebang takes the first line off, if it is one, but not its line end, so
// that lines keep their numbers.
func readShebang(source []byte) (Flags, []byte, error) {
	var flags Flags
	if !bytes.HasPrefix(source, []byte("#!")) {
		return flags, source, nil
	}
	end := bytes.IndexByte(source, '\n')
	if end < 0 {
		return flags, nil, resp.Error("ERR Invalid script shebang")
	}
	words := strings.Fields(string(source[:end]))
	if words[0] != "#!lua" {
		return flags, nil, resp.Error("ERR Unexpected engine in script shebang: " + words[0])
	}
	flags.Declared = true
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return flags, nil, resp.Error("ERR Unknown lua shebang option: " + word)
		}
		if err := flags.read(list); err != nil {
			return flags, nil, err
		}
	}
	return flags, source[end:], nil
}

func (f *Flags) read(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		switch name {
		case "":
		case "no-writes":
			f.NoWrites = true
		case "allow-oom":
			f.AllowOOM = true
		case "allow-stale":
			f.AllowStale = true
		case "no-cluster":
			f.NoCluster = true
		case "allow-cross-slot-keys":
			f.AllowCrossSlotKeys = true
		default:
			return resp.Error("ERR Unexpected flag in script shebang: " + name)
		}
	}
	return nil
}

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

// generate rewrites a chunk for our libraries and compiles it. The statements are
// changed.
func generate(stmts []ast.Stmt, name string) (proto *glua.FunctionProto, err error) {
	defer func() {
		if p := recover(); p != nil {
			proto, err = nil, fmt.Errorf("%s: %v", name, p)
		}
	}()
	if err := rewrite(stmts); err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	proto, err = glua.Compile(stmts, name)
	if err != nil {
		var cause *glua.CompileError
		if errors.As(err, &cause) {
			return nil, fmt.Errorf("%s:%d: %s", name, cause.Line, cause.Message)
		}
		return nil, err
	}
	// A main chunk has its arguments as "..." and no table "arg", as in Lua; the
	// interpreter would build that table on every call.
	proto.IsVarArg = glua.VarArgIsVarArg
	trim(proto)
	return proto, nil
}

// Load compiles source that a script has put together itself.
func Load(source []byte, name string) (*glua.FunctionProto, error) {
	stmts, err := parseChunk(source, name)
	if err != nil {
		return nil, err
	}
	return generate(stmts, name)
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

// MaxSource is the longest source that Compile takes, in bytes: the time to
// compile grows with its square in the worst case, and is 0.2 s at this length.
const MaxSource = 64 << 10
