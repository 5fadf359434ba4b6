package attach_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/attach"
	"github.com/cellserver/cellserver/rdb"
)

// dumb is a connection that nothing can be written to.
type dumb struct{ net.Conn }

func (dumb) Write([]byte) (int, error) { return 0, errors.New("broken") }
func (dumb) Close() error              { return nil }

// endless selects one database after the other, each with a command of the same length.
type endless struct {
	n    int
	left []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.left) == 0 {
		e.left = stream("SELECT " + strconv.Itoa(e.n%10))
		e.n++
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

// TestDatabaseOfALinkThatBreaks: the next link goes on in the database that was selected last,
// though the acknowledgements failed while what had come before was still applied.
func TestDatabaseOfALinkThatBreaks(t *testing.T) {
	h := &heard{}
	nothing := func() error { return nil }
	f := attach.New(attach.Options{
		Keyspace: newKeyspace(t), Runner: h, Begin: nothing, Whole: nothing, Log: slog.New(slog.DiscardHandler),
	})
	var copied bytes.Buffer
	w := rdb.NewWriter(&copied)
	require.NoError(t, w.Header())
	require.NoError(t, w.End())
	begin := fmt.Sprintf("$%d\r\n%s", copied.Len(), copied.Bytes())
	in := bufio.NewReader(io.MultiReader(strings.NewReader(begin), &endless{}))
	require.Error(t, f.Follow(t.Context(), dumb{}, in, "+FULLRESYNC "+strings.Repeat("a", 40)+" 0"))

	_, offset, _ := f.Current()
	applied := int(offset) / len(stream("SELECT 0"))
	require.Positive(t, applied)
	in = bufio.NewReader(bytes.NewReader(stream("SET k 1")))
	require.Error(t, f.Follow(t.Context(), dumb{}, in, "+CONTINUE"))
	require.Equal(t, []string{strconv.Itoa((applied-1)%10) + ":SET k 1"}, h.lines)
}
