package commands

import (
	"bytes"
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// scriptFlags is what the first line of a script says of it (Redis 7.0: "#!lua
// flags=no-writes").
type scriptFlags uint8

const (
	scriptNoWrites scriptFlags = 1 << iota
	scriptAllowOOM
	scriptAllowStale
	scriptNoCluster
	scriptAllowCrossSlot
	// scriptDeclared is set by any first line of the kind: what such a script does
	// not declare it may not do, whereas one without may do everything.
	scriptDeclared
)

var scriptFlagNames = map[string]scriptFlags{
	"no-writes":             scriptNoWrites,
	"allow-oom":             scriptAllowOOM,
	"allow-stale":           scriptAllowStale,
	"no-cluster":            scriptNoCluster,
	"allow-cross-slot-keys": scriptAllowCrossSlot,
}

// maxShebang is the longest first line that is read.
const maxShebang = 1 << 10

// parseShebang reads the first line of a script.
func parseShebang(source []byte) (flags scriptFlags, err resp.Error) {
	if !bytes.HasPrefix(source, []byte("#!")) {
		return 0, ""
	}
	end := bytes.IndexByte(source, '\n')
	if end < 0 || end > maxShebang {
		return 0, "ERR Invalid script shebang"
	}
	words, ok := splitWords(string(source[:end]))
	if !ok || len(words) == 0 {
		return 0, "ERR Invalid engine in script shebang"
	}
	if words[0] != "#!lua" {
		return 0, resp.Error("ERR Unexpected engine in script shebang: " + words[0])
	}
	flags = scriptDeclared
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return 0, resp.Error("ERR Unknown lua shebang option: " + word)
		}
		if list == "" {
			continue
		}
		for _, name := range strings.Split(list, ",") {
			f, ok := scriptFlagNames[name]
			if !ok {
				return 0, resp.Error("ERR Unexpected flag in script shebang: " + name)
			}
			flags |= f
		}
	}
	return flags, ""
}

// splitWords splits a line at spaces; a word may be in quotes. It returns false for
// quotes that are not closed, or closed in the middle of a word.
func splitWords(line string) (words []string, ok bool) {
	for {
		line = strings.TrimLeft(line, " \t\r\v\f")
		if line == "" {
			return words, true
		}
		var word strings.Builder
		for line != "" && !strings.ContainsRune(" \t\r\v\f", rune(line[0])) {
			if q := line[0]; q == '"' || q == '\'' {
				quoted, rest, closed := strings.Cut(line[1:], string(q))
				if !closed || rest != "" && !strings.ContainsRune(" \t\r\v\f", rune(rest[0])) {
					return nil, false
				}
				word.WriteString(quoted)
				line = rest
				break
			}
			word.WriteByte(line[0])
			line = line[1:]
		}
		words = append(words, word.String())
	}
}
