package resp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

// wideFrame returns a command of n words. The i-th word contains its index.
func wideFrame(n int) (frame []byte, words []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", n)
	for i := range n {
		word := fmt.Sprintf("%s%d", strings.Repeat("x", i%150), i)
		words = append(words, word)
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return []byte(b.String()), words
}

// TestWideCommandsMakeRoomOnce passes a command of very many words in chunks, as a socket delivers
// it. The memory for its pieces is released, and that for the whole command is used again for the
// next.
func TestWideCommandsMakeRoomOnce(t *testing.T) {
	const chunk = 16 << 10
	frame, words := wideFrame(20_000)
	lim := resp.DefaultLimits()
	lim.MaxCommand = 8 << 20
	var g resp.Guard
	room := make([][]byte, 0, 256)
	read := func() (args [][]byte) {
		for end := chunk; ; end += chunk {
			args, n, err := g.Next(frame[:min(end, len(frame))], room, &lim)
			require.Empty(t, err)
			if end >= len(frame) {
				require.Equal(t, len(frame), n)
				return args
			}
			require.Empty(t, args)
			require.Zero(t, n)
			require.LessOrEqual(t, cap(args), cap(room), "room was made for words that are split again")
		}
	}
	for range 3 {
		args := read()
		require.Len(t, args, len(words))
		for i, word := range words {
			if string(args[i]) != word {
				require.Equal(t, word, string(args[i]), i)
			}
		}
		resp.Recycle(args)
		require.Nil(t, args[0], "what was recycled still points to the input")
	}
}

// TestRecycleLeavesSmallSlicesAlone: the slices of a worker keep their content.
func TestRecycleLeavesSmallSlicesAlone(t *testing.T) {
	args := [][]byte{[]byte("a")}
	resp.Recycle(args)
	require.Equal(t, "a", string(args[0]))
	require.NotPanics(t, func() { resp.Recycle(nil) })
}
