package scripting

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// KeysOnly reports whether a script accesses only its KEYS, according to the commands of table.
func KeysOnly(table *command.Table, source string) (bool, resp.Error) {
	s, err := newEngine(&command.Server{Commands: table}).compile([]byte(source), false)
	if err != "" {
		return false, err
	}
	return s.keysOnly, ""
}
