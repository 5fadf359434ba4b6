package commands

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// TestCommandWithoutNamesIsMadeOnce: the replies of COMMAND and COMMAND DOCS about all commands
// are encoded once and reused, and equal the replies about each command in the protocol.
func TestCommandWithoutNamesIsMadeOnce(t *testing.T) {
	table := NewTable()
	for _, proto := range []int{2, 3, 2} {
		each := resp.Writer{Proto: proto}
		each.Array(len(table.Top()))
		for _, cmd := range table.Top() {
			cmd.WriteInfo(&each)
		}
		docs := resp.Writer{Proto: proto}
		docs.Map(len(table.Top()))
		for _, cmd := range table.Top() {
			cmd.WriteDocs(&docs)
		}
		c := command.Call{Worker: &command.Worker{Server: &command.Server{Commands: table}}, W: &resp.Writer{Proto: proto}}
		ask := func(run func(c *command.Call), args ...[]byte) []byte {
			c.Args, c.W.Buf = args, c.W.Buf[:0]
			run(&c)
			return c.W.Buf
		}
		command, of, nothing := []byte("COMMAND"), []byte("DOCS"), [][]byte(nil)
		commandAll := table.Lookup(command).Run
		commandInfo, commandDocs := table.Find([]byte("command|info")).Run, table.Find([]byte("command|docs")).Run
		require.True(t, bytes.Equal(each.Buf, ask(commandAll, command)))
		require.True(t, bytes.Equal(each.Buf, ask(commandInfo, append(nothing, command, []byte("INFO"))...)))
		require.True(t, bytes.Equal(docs.Buf, ask(commandDocs, append(nothing, command, of)...)))
		args := [][]byte{command, of}
		require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
			ask(commandAll, args...)
			ask(commandDocs, args...)
		}), 2.0, "and no more for each command")
	}
}
