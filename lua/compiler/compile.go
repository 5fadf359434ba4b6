package compiler

import (
	"bytes"
	"errors"
	"fmt"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/cellserver/cellserver/resp"
)

// ChunkName is the name of a script in Redis' messages.
const ChunkName = "user_script"

// compileErrorPrefix begins every error of Compile about the source.
const compileErrorPrefix = "ERR Error compiling script (new function): "

// Compile compiles a script. An error is a complete error reply. [MaxSource] bounds time and
// memory; the worst sources still take milliseconds, so long ones should not be compiled on an
// event loop.
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

// generate rewrites a chunk for the libraries of this module and compiles it. It changes stmts.
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
	// As in Lua, a main chunk has its arguments as "..." and no table "arg", which the interpreter
	// would make at every call.
	proto.IsVarArg = glua.VarArgIsVarArg
	trim(proto)
	return proto, nil
}

// Load compiles source that a script has made.
func Load(source []byte, name string) (*glua.FunctionProto, error) {
	stmts, err := parseChunk(source, name)
	if err != nil {
		return nil, err
	}
	return generate(stmts, name)
}
