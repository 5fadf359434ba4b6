package commands_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
)

// TestKeysAreUsedAsInRedis compares the flags of keys with those of a Redis.
func TestKeysAreUsedAsInRedis(t *testing.T) {
	f, err := os.Open("testdata/redis-key-uses.txt")
	require.NoError(t, err)
	defer f.Close()
	redis := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, uses, ok := strings.Cut(lines.Text(), ": "); ok {
			redis[name] = uses
		}
	}
	compared := 0
	for _, cmd := range command.NewTable(commands.Groups()).All() {
		want, known := redis[cmd.Name]
		k := &cmd.Keys
		if !known || want == "not_key" {
			continue
		}
		uses := strings.Join(k.Use.Names(), " ")
		if k.UseOf != nil {
			uses += " variable_flags"
		}
		if k.Rest != k.Use {
			uses += "; " + strings.Join(k.Rest.Names(), " ")
		}
		require.Equal(t, want, uses, cmd.Name)
		compared++
	}
	require.Greater(t, compared, 100)
}
