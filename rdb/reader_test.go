package rdb_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/rdb"
)

// sum returns the checksum, computed by the standard library, which inverts it before and after.
func sum(p []byte) uint64 {
	return ^crc64.Update(^uint64(0), crc64.MakeTable(0x95ac9329ac4bc9b5), p)
}

// sealed returns an RDB with its checksum. head is its magic and version.
func sealed(head string, parts ...string) []byte {
	body := []byte(head + strings.Join(parts, "") + "\xff")
	return binary.LittleEndian.AppendUint64(body, sum(body))
}

// text returns a string in its plain encoding.
func text(s string) string { return length(len(s)) + s }

func length(n int) string {
	switch {
	case n < 1<<6:
		return string([]byte{byte(n)})
	case n < 1<<14:
		return string([]byte{0x40 | byte(n>>8), byte(n)})
	}
	return string(binary.BigEndian.AppendUint32([]byte{0x80}, uint32(n)))
}

// little returns a little-endian number of n bytes.
func little(n int, v int64) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(v))[:n])
}

// seen records the calls of a visitor, one line for each value.
type seen struct {
	lines []string
	open  *strings.Builder
	parts int
	// elements counts all elements.
	elements int
}

func (s *seen) visitor(t testing.TB) *rdb.Visitor {
	return &rdb.Visitor{
		Aux: func(name, value []byte) error {
			s.lines = append(s.lines, fmt.Sprintf("aux %s=%s", name, value))
			return nil
		},
		Resize: func(db int, keys, expires uint64) error {
			s.lines = append(s.lines, fmt.Sprintf("db %d has %d keys, %d expire", db, keys, expires))
			return nil
		},
		Skipped: func(k rdb.Skipped) error {
			line := "skipped " + k.What
			if k.Key != nil {
				line += " " + string(k.Key.Name)
			}
			s.lines = append(s.lines, line)
			return nil
		},
		Value: func(key *rdb.Key, part rdb.Part) error {
			s.value(t, key, part)
			return nil
		},
	}
}

func (s *seen) value(t testing.TB, key *rdb.Key, part rdb.Part) {
	require.Equal(t, s.open == nil, part.First)
	s.parts++
	if part.First {
		s.open = &strings.Builder{}
		fmt.Fprintf(s.open, "%d %s %s", key.DB, key.Kind, key.Name)
		if key.Expire != 0 {
			fmt.Fprintf(s.open, " @%d", key.Expire)
		}
		s.open.WriteByte(':')
	}
	if key.Kind == rdb.String {
		s.open.WriteString(" " + string(part.Text))
	}
	for _, e := range part.Elements {
		s.elements++
		s.open.WriteString(" " + string(e.Name))
		switch key.Kind {
		case rdb.Hash:
			s.open.WriteString("=" + string(e.Value))
		case rdb.SortedSet:
			fmt.Fprintf(s.open, "=%v", e.Score)
		}
		if e.Expire != 0 {
			fmt.Fprintf(s.open, "@%d", e.Expire)
		}
	}
	if part.Last {
		s.lines, s.open = append(s.lines, s.open.String()), nil
	}
}

// read reads a whole RDB, after which the input must end.
func read(t testing.TB, file []byte) ([]string, error) {
	t.Helper()
	var s seen
	in := bufio.NewReader(bytes.NewReader(file))
	r := rdb.NewReader(in, rdb.Limits{})
	err := r.Read(s.visitor(t))
	if err == nil {
		require.EqualValues(t, len(file), r.Offset())
		require.Nil(t, s.open, "a value has no last part")
		_, err := in.ReadByte()
		require.ErrorIs(t, err, io.EOF)
	}
	return s.lines, err
}

func readInto(file []byte, v *rdb.Visitor, limits rdb.Limits) error {
	return rdb.NewReader(bufio.NewReader(bytes.NewReader(file)), limits).Read(v)
}

func TestChecksumOfRedis(t *testing.T) {
	require.Equal(t, uint64(0xe9c6d914c4b8d9ca), sum([]byte("123456789")))
	for n := range 40 { // eight bytes at once and one by one
		_, err := read(t, sealed("REDIS0009", "\x00", text("k"), text(strings.Repeat("x", n))))
		require.NoError(t, err)
	}
}

// TestOpcodesAndStrings has every opcode and every encoding of a string as bytes.
func TestOpcodesAndStrings(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []string
	}{
		"nothing":                 {"", nil},
		"string":                  {"\x00\x01k\x03val", []string{"0 string k: val"}},
		"empty string":            {"\x00\x00\x00", []string{"0 string : "}},
		"8 bits":                  {"\x00\x01k\xc0\x80", []string{"0 string k: -128"}},
		"16 bits":                 {"\x00\x01k\xc1\xff\x7f", []string{"0 string k: 32767"}},
		"32 bits":                 {"\x00\x01k\xc2\x00\x00\x00\x80", []string{"0 string k: -2147483648"}},
		"number as a key":         {"\x00\xc0\x07\x01v", []string{"0 string 7: v"}},
		"compressed":              {"\x00\x01k\xc3\x05\x0a\x00a\xe0\x00\x00", []string{"0 string k: aaaaaaaaaa"}},
		"length of 14 bits":       {"\x00\x01k\x40\x03val", []string{"0 string k: val"}},
		"length of 32 bits":       {"\x00\x01k\x80\x00\x00\x00\x03val", []string{"0 string k: val"}},
		"length of 64 bits":       {"\x00\x01k\x81\x00\x00\x00\x00\x00\x00\x00\x03val", []string{"0 string k: val"}},
		"expiry in ms":            {"\xfc\x15\xcd\x5b\x07\x00\x00\x00\x00\x00\x01k\x01v\x00\x01l\x01w", []string{"0 string k @123456789: v", "0 string l: w"}},
		"expiry in seconds":       {"\xfd\x15\xcd\x5b\x07\x00\x01k\x01v", []string{"0 string k @123456789000: v"}},
		"expiry before 1970":      {"\xfd\x00\x00\x00\x80\x00\x01k\x01v", []string{"0 string k @1: v"}},
		"expiry 0":                {"\xfc\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01k\x01v", []string{"0 string k @1: v"}},
		"expiry -1":               {"\xfc\xff\xff\xff\xff\xff\xff\xff\xff\x00\x01k\x01v", []string{"0 string k: v"}},
		"idle and frequency":      {"\xf8\x0a\x00\x01k\x01v\xf9\xff\x00\x01l\x01w", []string{"0 string k: v", "0 string l: w"}},
		"databases":               {"\xfe\x02\xfb\x01\x00\x00\x01k\x01v\xfe\x40\x64\x00\x01k\x01w", []string{"db 2 has 1 keys, 0 expire", "2 string k: v", "100 string k: w"}},
		"fields at the beginning": {"\xfa\x09redis-ver\x057.0.1\xfa\x0aredis-bits\xc0\x40", []string{"aux redis-ver=7.0.1", "aux redis-bits=64"}},
		"slots":                   {"\xf4\x05\x01\x00\x00\x01k\x01v", []string{"0 string k: v"}},
		"functions":               {"\xf5\x05#!lua\x00\x01k\x01v", []string{"skipped functions", "0 string k: v"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, sealed("REDIS0011", test.body))
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestVersions(t *testing.T) {
	for head, valid := range map[string]bool{
		"REDIS0006": true, "REDIS0009": true, "REDIS0013": true, "VALKEY080": true,
		"REDIS0005": false, "REDIS0014": false, "REDIS0080": false, "VALKEY081": false, "VALKEY011": false,
		"REDIS 009": false, "REDIS+009": false, "REDIX0009": false, "redis0009": false, "*3\r\n$3\r\nS": false,
	} {
		t.Run(head, func(t *testing.T) {
			_, err := read(t, sealed(head, "\x00\x01k\x01v"))
			if valid {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, rdb.ErrVersion)
		})
	}
	r := rdb.NewReader(bufio.NewReader(bytes.NewReader(sealed("VALKEY080"))), rdb.Limits{})
	require.NoError(t, r.Read(&rdb.Visitor{}))
	version, valkey := r.Version()
	require.Equal(t, 80, version)
	require.True(t, valkey)
}

// TestNothingIsReadBeyondTheEnd: the bytes after an RDB stay in the caller's reader, however small
// its buffer is and however few bytes arrive at once.
func TestNothingIsReadBeyondTheEnd(t *testing.T) {
	file := sealed("REDIS0009", "\x00\x01k", text(strings.Repeat("v", 100)))
	stream := append(slices.Clone(file), "*1\r\n$4\r\nPING\r\n"...)
	for name, in := range map[string]*bufio.Reader{
		"at once":      bufio.NewReader(bytes.NewReader(stream)),
		"byte by byte": bufio.NewReader(iotest.OneByteReader(bytes.NewReader(stream))),
		"small":        bufio.NewReaderSize(bytes.NewReader(stream), 16),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, rdb.NewReader(in, rdb.Limits{}).Read(&rdb.Visitor{}))
			rest, err := io.ReadAll(in)
			require.NoError(t, err)
			require.Equal(t, "*1\r\n$4\r\nPING\r\n", string(rest))
		})
	}
	// The reader does not wait for a byte after the end either: that comes only when a client
	// writes.
	silent := io.MultiReader(bytes.NewReader(file), iotest.ErrReader(errors.New("waited")))
	require.NoError(t, rdb.NewReader(bufio.NewReader(silent), rdb.Limits{}).Read(&rdb.Visitor{}))
}

// TestErrorsAreWrapped: the caller gets the errors of the input and of the visitor.
func TestErrorsAreWrapped(t *testing.T) {
	own := errors.New("own")
	file := sealed("REDIS0009", "\xfa\x01a\x01b\xfb\x01\x00\x00\x01k\x01v\x01\x01l\x01\x01a\xf5\x01f\x01\x01e\x00")
	for name, v := range map[string]*rdb.Visitor{
		"aux":     {Aux: func(_, _ []byte) error { return own }},
		"resize":  {Resize: func(int, uint64, uint64) error { return own }},
		"skipped": {Skipped: func(rdb.Skipped) error { return own }},
		"string":  {Value: func(*rdb.Key, rdb.Part) error { return own }},
		"list": {Value: func(k *rdb.Key, _ rdb.Part) error {
			if k.Kind == rdb.List {
				return own
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, rdb.NewReader(bufio.NewReader(bytes.NewReader(file)), rdb.Limits{}).Read(v), own)
		})
	}
	in := io.MultiReader(bytes.NewReader(file[:20]), iotest.ErrReader(own))
	err := rdb.NewReader(bufio.NewReader(in), rdb.Limits{}).Read(&rdb.Visitor{})
	require.ErrorIs(t, err, own)
	require.ErrorContains(t, err, "RDB at byte 20: ")
}

// TestChecksum: a server that computes no checksum writes 0, which is accepted.
func TestChecksum(t *testing.T) {
	file := sealed("REDIS0009", "\x00\x01k\x01v")
	copy(file[len(file)-8:], make([]byte, 8))
	_, err := read(t, file)
	require.NoError(t, err)
	file[len(file)-1] = 1
	_, err = read(t, file)
	require.ErrorIs(t, err, rdb.ErrChecksum)
}
