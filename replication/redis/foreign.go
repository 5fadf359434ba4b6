package redis

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/cellserver/cellserver/rdb"
)

// markSize is the length in bytes of the mark that ends an RDB of unknown length.
const markSize = 40

// errTransfer is wrapped by errors in the framing of an RDB.
var errTransfer = errors.New("the transfer of the RDB")

// transfer says how an RDB is framed: its size is announced, or a mark follows its end.
type transfer struct {
	size int64  // number of bytes of the RDB; -1 if there is a mark
	mark []byte // the bytes that follow the RDB; nil if there is a size
}

// readTransfer reads the line before an RDB. It skips empty lines, which a primary sends while it
// is not ready.
func readTransfer(in *bufio.Reader) (transfer, error) {
	for {
		line, err := readLine(in)
		if err != nil {
			return transfer{}, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0:
		case line[0] == '-':
			return transfer{}, fmt.Errorf("%w: the primary says %q", errTransfer, printable(string(line[1:])))
		case bytes.HasPrefix(line, []byte("$EOF:")) && len(line) == len("$EOF:")+markSize:
			return transfer{size: -1, mark: bytes.Clone(line[len("$EOF:"):])}, nil
		case line[0] == '$':
			size, err := strconv.ParseInt(string(line[1:]), 10, 64)
			if err == nil && size >= 0 {
				return transfer{size: size}, nil
			}
			fallthrough
		default:
			return transfer{}, fmt.Errorf("%w begins with %q", errTransfer, printable(string(line)))
		}
	}
}

// readRDB reads an RDB with its framing from in, and passes the values to visitor. It reads no
// byte beyond the framing. size is the number of bytes of the RDB that were read.
func readRDB(in *bufio.Reader, visitor *rdb.Visitor) (size int64, err error) {
	t, err := readTransfer(in)
	if err != nil {
		return 0, err
	}
	r := rdb.NewReader(in, rdb.Limits{})
	if err := r.Read(visitor); err != nil {
		return r.Offset(), err
	}
	if t.mark == nil {
		if r.Offset() != t.size {
			return r.Offset(), fmt.Errorf("%w: %d bytes were announced, the RDB has %d", errTransfer, t.size, r.Offset())
		}
		return r.Offset(), nil
	}
	var mark [markSize]byte
	if _, err := io.ReadFull(in, mark[:]); err != nil {
		return r.Offset(), whole(err)
	}
	if !bytes.Equal(mark[:], t.mark) {
		return r.Offset(), fmt.Errorf("%w does not end with its mark", errTransfer)
	}
	return r.Offset(), nil
}
