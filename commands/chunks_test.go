package commands_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

// chunkable are requests whose replies do not depend on their timing, including ignored ones,
// ones that change the session, and refused ones.
var chunkable = []string{
	"PING\r\n", "\r\n", "*0\r\n", "*-1\r\n", "  \r\n", "ECHO \"a b\"\r\n",
	"*1\r\n$4\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n$3\r\nabc\r\n", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
	"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n", "*1\r\n$5\r\nRESET\r\n", "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n",
	"*1\r\n$5\r\nMULTI\r\n", "*1\r\n$4\r\nEXEC\r\n", "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n", "*1\r\n$4\r\nNOPE\r\n",
	"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n", "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$2\r\n15\r\n$2\r\n30\r\n$1\r\nx\r\n",
	"*1\r\n$4\r\nQUIT\r\n", "*1\r\n+oops\r\n", "*1\r\n$-1\r\n",
}

// play feeds the stream in the given pieces and returns all replies until the close, without the
// ids of connections, which differ.
func play(b *inproc.Fed, cuts [][]byte) string {
	var pending, replies []byte
	for _, cut := range cuts {
		pending = append(pending, cut...)
		for {
			turn := b.Turn(pending, nil)
			replies = append(replies, turn.Whole()...)
			pending = pending[turn.Consumed:]
			if turn.Next == transport.Close {
				return withoutID(replies)
			}
			if turn.Next != transport.Again {
				break
			}
		}
	}
	return withoutID(replies)
}

var connectionID = regexp.MustCompile(`id\r\n:\d+`)

func withoutID(replies []byte) string { return string(connectionID.ReplaceAll(replies, []byte("id"))) }

// TestChunksDoNotMatter: random streams that are cut at random places have the same replies as
// the whole stream, whatever is parsed ahead of the running command.
func TestChunksDoNotMatter(t *testing.T) {
	server := inproc.OpenTimed(t)
	rapid.Check(t, func(t *rapid.T) {
		stream := []byte{}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(chunkable)-1), 1, 120).Draw(t, "requests") {
			stream = append(stream, chunkable[i]...)
		}
		want := play(server.Another(), [][]byte{stream})
		var cuts [][]byte
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			cuts, rest = append(cuts, rest[:n]), rest[n:]
		}
		require.Equal(t, want, play(server.Another(), cuts))
		require.Equal(t, want, play(server.Another(), bytes.SplitAfter(stream, nil)), "byte by byte")
	})
}
