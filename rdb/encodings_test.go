package rdb_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/rdb"
)

// listpack returns a listpack of entries that end with their sizes.
func listpack(entries ...string) string {
	body := strings.Join(entries, "") + "\xff"
	return text(little(4, int64(6+len(body))) + little(2, int64(len(entries))) + body)
}

// ziplist returns a ziplist. The entries are given without the sizes that precede them.
func ziplist(entries ...string) string {
	body, before, tail := "", 0, 10
	for _, e := range entries {
		tail = 10 + len(body)
		size := string([]byte{byte(before)})
		if before >= 254 {
			size = "\xfe" + little(4, int64(before))
		}
		body, before = body+size+e, len(size+e)
	}
	return text(little(4, int64(11+len(body))) + little(4, int64(tail)) + little(2, int64(len(entries))) + body + "\xff")
}

// encodings has values of each encoding: the head of the file, the type, the bytes after the key k,
// and the expected result.
var encodings = map[string]struct {
	head, code, body, want string
}{
	"list":                {"REDIS0006", "\x01", "\x02\x01a\xc0\x05", "0 list k: a 5"},
	"list, ziplist":       {"REDIS0006", "\x0a", ziplist("\x01a", "\xfd"), "0 list k: a 12"},
	"ziplist, strings":    {"REDIS0006", "\x0a", ziplist("\x40\x01b", "\x80\x00\x00\x00\x01c", "\x00"), "0 list k: b c "},
	"ziplist, integers":   {"REDIS0006", "\x0a", ziplist("\xf1", "\xfe\xff", "\xc0\x00\x80", "\xf0\xff\xff\x7f", "\xd0\x00\x00\x00\x80", "\xe0\xff\xff\xff\xff\xff\xff\xff\x7f"), "0 list k: 0 -1 -32768 8388607 -2147483648 9223372036854775807"},
	"ziplist, long entry": {"REDIS0006", "\x0a", ziplist("\x41\x2c"+strings.Repeat("x", 300), "\xf2"), "0 list k: " + strings.Repeat("x", 300) + " 1"},
	"list, quicklist":     {"REDIS0007", "\x0e", "\x02" + ziplist("\x01a", "\x01b") + ziplist("\x01c"), "0 list k: a b c"},
	"list, quicklist 2":   {"REDIS0010", "\x12", "\x03\x02" + listpack("\x81a\x02", "\x07\x01") + "\x01\x01b\x02" + listpack("\x81c\x02"), "0 list k: a 7 b c"},
	"listpack, strings":   {"REDIS0010", "\x12", "\x01\x02" + listpack("\x80\x01", "\xe0\x01d\x03", "\xf0\x01\x00\x00\x00e\x06"), "0 list k:  d e"},
	"listpack, integers":  {"REDIS0010", "\x12", "\x01\x02" + listpack("\x7f\x01", "\xdf\xff\x02", "\xd0\x00\x02", "\xf1\x00\x80\x03", "\xf2\xff\xff\x7f\x04", "\xf3\x00\x00\x00\x80\x05", "\xf4\x00\x00\x00\x00\x00\x00\x00\x80\x09"), "0 list k: 127 -1 -4096 -32768 8388607 -2147483648 -9223372036854775808"},
	"listpack, long":      {"REDIS0010", "\x12", "\x01\x02" + listpack("\xe1\x2c"+strings.Repeat("x", 300)+"\x02\xae", "\x01\x01"), "0 list k: " + strings.Repeat("x", 300) + " 1"},
	"set":                 {"REDIS0006", "\x02", "\x02\x01a\x01b", "0 set k: a b"},
	"set, intset 16":      {"REDIS0006", "\x0b", text("\x02\x00\x00\x00\x02\x00\x00\x00\xff\xff\x05\x00"), "0 set k: -1 5"},
	"set, intset 32":      {"REDIS0006", "\x0b", text("\x04\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00"), "0 set k: 65536"},
	"set, intset 64":      {"REDIS0006", "\x0b", text("\x08\x00\x00\x00\x01\x00\x00\x00" + little(8, math.MinInt64)), "0 set k: -9223372036854775808"},
	"set, listpack":       {"REDIS0011", "\x14", listpack("\x81a\x02", "\x02\x01"), "0 set k: a 2"},
	"hash":                {"REDIS0006", "\x04", "\x02\x01a\x01b\x01c\xc0\xff", "0 hash k: a=b c=-1"},
	"hash, zipmap":        {"REDIS0006", "\x09", text("\x02\x01a\x01\x00b\x01c\x01\x02d..\xff"), "0 hash k: a=b c=d"},
	"zipmap, long":        {"REDIS0006", "\x09", text("\x01\xfe\x01\x00\x00\x00a\xfe\x2c\x01\x00\x00\x00" + strings.Repeat("x", 300) + "\xff"), "0 hash k: a=" + strings.Repeat("x", 300)},
	"zipmap, uncounted":   {"REDIS0006", "\x09", text("\xfe\x01a\x01\x00b\xff"), "0 hash k: a=b"},
	"hash, ziplist":       {"REDIS0006", "\x0d", ziplist("\x01a", "\xfe\x0d"), "0 hash k: a=13"},
	"hash, listpack":      {"REDIS0010", "\x10", listpack("\x81a\x02", "\x0d\x01"), "0 hash k: a=13"},

	"hash, expiring fields":           {"REDIS0012", "\x18", little(8, 1000) + "\x02\x01\x01a\x01b\x00\x01c\x01d", "0 hash k: a=b@1000 c=d"},
	"hash, no field expires":          {"REDIS0012", "\x18", little(8, 1<<48) + "\x01\x00\x01a\x01b", "0 hash k: a=b"},
	"hash, expiring fields, packed":   {"REDIS0012", "\x19", little(8, 1000) + listpack("\x81a\x02", "\x81b\x02", "\xc3\xe8\x02", "\x81c\x02", "\x81d\x02", "\x00\x01"), "0 hash k: a=b@1000 c=d"},
	"hash, before 7.4":                {"REDIS0012", "\x16", "\x02\x43\xe8\x01a\x01b\x00\x01c\x01d", "0 hash k: a=b@1000 c=d"},
	"hash, before 7.4, packed":        {"REDIS0012", "\x17", listpack("\x81a\x02", "\x81b\x02", "\x00\x01"), "0 hash k: a=b"},
	"hash, expiring fields of Valkey": {"VALKEY080", "\x16", "\x02\x01a\x01b" + little(8, 1000) + "\x01c\x01d" + little(8, -1), "0 hash k: a=b@1000 c=d"},

	"sorted set, scores as text": {"REDIS0006", "\x03", "\x04\x01a\x031.5\x01b\xfe\x01c\xff\x01d\x05-1e+2", "0 sorted set k: a=1.5 b=+Inf c=-Inf d=-100"},
	"sorted set":                 {"REDIS0008", "\x05", "\x01\x01a" + little(8, int64(math.Float64bits(1.25))), "0 sorted set k: a=1.25"},
	"sorted set, ziplist":        {"REDIS0006", "\x0c", ziplist("\x01a", "\xf2", "\x01b", "\x031.5", "\x01c", "\x04-inf"), "0 sorted set k: a=1 b=1.5 c=-Inf"},
	"sorted set, listpack":       {"REDIS0010", "\x11", listpack("\x81a\x02", "\x01\x01", "\x81b\x02", "\x83inf\x04"), "0 sorted set k: a=1 b=+Inf"},
	"empty":                      {"REDIS0006", "\x01", "\x00", "skipped empty list k"},
	"empty, packed":              {"REDIS0010", "\x10", listpack(), "skipped empty hash k"},
	"empty node":                 {"REDIS0007", "\x0e", "\x02" + ziplist() + ziplist("\x01c"), "0 list k: c"},
	"stream 1":                   {"REDIS0009", "\x0f", streamNodes + "\x01\x05\x00" + "\x01\x01g\x05\x00" + pending + "\x01\x01c" + little(8, 9) + "\x01" + little(8, 5) + little(8, 0), "skipped stream k"},
	"stream 2":                   {"REDIS0010", "\x13", streamNodes + "\x01\x05\x00\x05\x00\x00\x00\x01" + "\x01\x01g\x05\x00\x01" + pending + "\x01\x01c" + little(8, 9) + "\x01" + little(8, 5) + little(8, 0), "skipped stream k"},
	"stream 3":                   {"REDIS0011", "\x15", streamNodes + "\x01\x05\x00\x05\x00\x00\x00\x01" + "\x01\x01g\x05\x00\x01" + pending + "\x01\x01c" + little(8, 9) + little(8, 9) + "\x01" + little(8, 5) + little(8, 0), "skipped stream k"},
	"stream 4":                   {"REDIS0013", "\x1a", streamNodes + "\x01\x05\x00\x05\x00\x00\x00\x01" + "\x01\x01g\x05\x00\x01" + pending + "\x01\x01c" + little(8, 9) + little(8, 9) + "\x01" + little(8, 5) + little(8, 0) + "\x40\x64\x40\x64" + "\x01\x01p\x02\x01a\x05\x00\x01b\x81\x00\x00\x01\x99\x00\x00\x00\x00\x01" + "\x02\x03", "skipped stream k"},
	"stream 4, as most":          {"REDIS0013", "\x1a", streamNodes + "\x01\x05\x00\x05\x00\x00\x00\x01" + "\x00" + "\x40\x64\x40\x64\x00\x00\x00", "skipped stream k"},
	"module":                     {"REDIS0009", "\x07", moduleID + everyModuleOpcode, "skipped module ReJSON-RL k"},
}

const (
	// streamNodes is a node of a stream, whose content is not examined.
	streamNodes = "\x01\x10" + "0123456789abcdef" + "\x03abc"
	// pending is an entry of a stream that was delivered once.
	pending = "\x01\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x01"
	// moduleID is the ID of ReJSON-RL in version 3.
	moduleID = "\x81\x45\xe2\x52\x38\xdf\x91\x2c\x03"
	// everyModuleOpcode has all opcodes that a module can save.
	everyModuleOpcode = "\x02\x05\x01\x03\x03ffff\x04dddddddd\x05\x03abc\x05\xc3\x05\x0a\x00a\xe0\x00\x00\x05\xc0\x01\x05\xc1\x01\x01\x05\xc2\x01\x01\x01\x01\x00"
)

func TestEncodings(t *testing.T) {
	for name, test := range encodings {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, sealed(test.head, test.code, "\x01k", test.body, "\x00\x01l\x01v"))
			require.NoError(t, err)
			require.Equal(t, []string{test.want, "0 string l: v"}, got)
		})
	}
}

// TestWhatBelongsToNoKey: data that belongs to no key, or only describes the next one, is skipped.
func TestWhatBelongsToNoKey(t *testing.T) {
	const after = "\x00\x01k\x01v"
	got, err := read(t, sealed("REDIS0013", "\xf7"+moduleID+"\x02\x02"+everyModuleOpcode, "\xf3\x02META\x02\x07\x00TWOS\x00"+after))
	require.NoError(t, err)
	require.Equal(t, []string{"skipped module data ReJSON-RL", "0 string k: v"}, got)
	got, err = read(t, sealed("VALKEY080", "\xf3\x03job\x02\x00\x05\x07\x09"+after))
	require.NoError(t, err)
	require.Equal(t, []string{"skipped slot import", "0 string k: v"}, got)
}

// TestParts: large collections come in parts. A part is never much longer than 64 KiB.
func TestParts(t *testing.T) {
	for name, test := range map[string]struct {
		n, size, atLeast int
	}{
		"small elements":    {10_000, 1, 19},
		"elements of 1 KiB": {1_000, 1 << 10, 16},
		"large elements":    {10, 100_000, 10},
	} {
		t.Run(name, func(t *testing.T) {
			var body strings.Builder
			for i := range test.n {
				body.WriteString(text(strings.Repeat(string(rune('a'+i%26)), test.size)))
			}
			var s seen
			require.NoError(t, readInto(sealed("REDIS0009", "\x01\x01k"+length(test.n)+body.String()), s.visitor(t), rdb.Limits{}))
			require.GreaterOrEqual(t, s.parts, test.atLeast)
			require.Equal(t, test.n, s.elements)
			words := strings.Fields(s.lines[0])[3:]
			for i, w := range words {
				require.Len(t, w, test.size)
				require.Equal(t, byte('a'+i%26), w[0])
			}
		})
	}
}
