package compiler

import (
	"bytes"
	"errors"
	"fmt"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/cellserver/cellserver/resp"
)

// ChunkName is the name of a script in error messages, as in Redis.
const ChunkName = "user_script"

// compileErrorPrefix begins the errors of Compile for source that is too long or has invalid
// syntax.
const compileErrorPrefix = "ERR Error compiling script (new function): "

// Compile compiles a script. An error is a complete error reply. Compile copies source. [MaxSource]
// bounds the time and memory that it takes. The worst sources still take 0.2 s, so long ones should
// not be compiled on an event loop.
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
	found := analyse(stmts)
	proto, err := generate(stmts, ChunkName)
	if err != nil {
		return nil, resp.Error(compileErrorPrefix + err.Error())
	}
	return &Script{
		sha:    SHA(source),
		source: bytes.Clone(source),
		proto:  proto,
		flags:  flags,
		facts:  found,
	}, nil
}

// generate rewrites a chunk for the libraries of this module, compiles it, and returns its main
// function. It changes stmts. name is the name of the chunk in error messages. A panic of the
// interpreter's compiler becomes an error.
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
	// As in Lua, a main chunk has its arguments as "..." and has no table "arg". The interpreter
	// would make that table at every call.
	proto.IsVarArg = glua.VarArgIsVarArg
	trim(proto)
	return proto, nil
}

// Load compiles source that a script has made at run time. name is the name of the chunk in error
// messages. Errors have the form of Lua's, "name:line: message".
func Load(source []byte, name string) (*glua.FunctionProto, error) {
	stmts, err := parseChunk(source, name)
	if err != nil {
		return nil, err
	}
	return generate(stmts, name)
}
