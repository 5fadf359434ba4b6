package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/internal/rlstest"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/messages"
	"github.com/cellserver/cellserver/rls/wire"
)

func TestDecode(t *testing.T) {
	for text, want := range map[string]rls.Request{
		"":                                    {},
		`domain: "d" hits_addend: 4294967295`: {Domain: []byte("d"), Hits: math.MaxUint32},
		`descriptors {}`:                      {Descriptors: []rls.Descriptor{{}}},
		`descriptors { entries { key: "a" value: "b" } entries { key: "c" } entries {} } descriptors { limit {} hits_addend {} }`: {Descriptors: []rls.Descriptor{
			{Entries: []rls.Entry{{Key: []byte("a"), Value: []byte("b")}, {Key: []byte("c")}, {}}}, {HasOwn: true, HasHits: true},
		}},
		`descriptors { limit { requests_per_unit: 7 unit: -1 } hits_addend { value: 18446744073709551615 } }`: {Descriptors: []rls.Descriptor{
			{HasOwn: true, Own: rls.Own{Requests: 7, Unit: -1}, HasHits: true, Hits: math.MaxUint64},
		}},
	} {
		r := rls.Request{Domain: []byte("before"), Hits: 3, Descriptors: []rls.Descriptor{
			{Entries: []rls.Entry{{Key: []byte("before")}}, HasOwn: true, HasHits: true, Hits: 4}, {}, {HasOwn: true},
		}}
		require.NoError(t, wire.Decode(rlstest.Encode(t, "Request", text), &r))
		require.Equal(t, fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", r), "%s", text)
	}
}

func TestDecodeSkipsWhatItDoesNotKnow(t *testing.T) {
	known := rlstest.Encode(t, "Request", `domain: "d"`)
	for _, unknown := range []string{"\x78\x01", "\x7a\x02ab", "\x79abcdefgh", "\x7dabcd", "\x7b\x78\x01\x7c", "\x0d1234", "\x10\x05"} { // the last two have a known number and another type
		var r rls.Request
		require.NoError(t, wire.Decode(append([]byte(unknown), known...), &r), "%q", unknown)
		require.Equal(t, "d", string(r.Domain))
	}
	var r rls.Request
	require.NoError(t, wire.Decode(append(rlstest.Encode(t, "Request", `domain: "c"`), known...), &r))
	require.Equal(t, "d", string(r.Domain), "the last one counts")
}

func TestDecodeRefuses(t *testing.T) {
	var descriptors, entries []byte
	for range rls.MaxDescriptors + 1 {
		descriptors = append(descriptors, "\x12\x00"...)
	}
	for range rls.MaxEntries + 1 {
		entries = append(entries, "\x0a\x00"...)
	}
	for message, want := range map[string]error{
		"\x0a":                     wire.ErrRequest,
		"\x0a\x05abc":              wire.ErrRequest,
		"\x18\x80":                 wire.ErrRequest,
		"\x00":                     wire.ErrRequest,
		"\x7b\x78\x01":             wire.ErrRequest, // a group without an end
		"\x12\x01\x0a":             wire.ErrRequest,
		"\x12\x04\x0a\x02\x0a\x05": wire.ErrRequest,
		string(descriptors):        rls.ErrDescriptors,
		"\x12" + string(rune(len(entries))) + string(entries): rls.ErrEntries,
		string(make([]byte, wire.MaxRequest+1)):               wire.ErrTooLong,
	} {
		var r rls.Request
		require.ErrorIs(t, wire.Decode([]byte(message), &r), want, "%q", message)
	}
}

func TestAppendResponse(t *testing.T) {
	long := string(bytes.Repeat([]byte("n"), 20_000))
	for _, c := range []struct {
		answer rls.Answer
		want   string
	}{
		{rls.Answer{Overall: rls.OK, Header: -1}, "overall_code: 1"},
		{
			rls.Answer{Overall: rls.OverLimit, Header: -1, Statuses: []rls.Status{{Code: rls.OK}, {Code: rls.OK, Remaining: math.MaxUint32}}},
			"overall_code: 2 statuses { code: 1 } statuses { code: 1 limit_remaining: 4294967295 }",
		},
		{
			rls.Answer{Overall: rls.OverLimit, Header: 0, Statuses: []rls.Status{{Code: rls.OverLimit, Limited: true, Requests: 2, Unit: 7, Name: long, Reset: 604800}}},
			`overall_code: 2 statuses { code: 2 current_limit { requests_per_unit: 2 unit: 7 name: "` + long + `" } duration_until_reset { seconds: 604800 } }
			response_headers_to_add { key: "l" value: "2" } response_headers_to_add { key: "r" value: "0" } response_headers_to_add { key: "t" value: "604800" }`,
		},
		{
			rls.Answer{Header: -1, Metadata: rls.Struct{
				{Name: "a", Value: nil},
				{Name: "b", Value: []any{1.5, "x", true, rls.Struct{{Name: "", Value: []any{}}}, nil}},
				{Name: "c", Value: false},
				{Name: "d", Value: 0.0},
				{Name: "e", Value: ""},
				{Name: "f", Value: rls.Struct{}},
			}},
			`dynamic_metadata { fields { key: "a" value { null_value: NULL_VALUE } }
			fields { key: "b" value { list_value { values { number_value: 1.5 } values { string_value: "x" } values { bool_value: true }
			values { struct_value { fields { key: "" value { list_value {} } } } } values { null_value: NULL_VALUE } } } }
			fields { key: "c" value { bool_value: false } } fields { key: "d" value { number_value: 0 } }
			fields { key: "e" value { string_value: "" } } fields { key: "f" value { struct_value {} } } }`,
		},
	} {
		rlstest.Same(t, "Response", c.want, wire.AppendResponse([]byte("before"), &c.answer, wire.Headers{Limit: "l", Remaining: "r", Reset: "t"})[len("before"):])
	}
}

// TestAppendResponseRandomly compares the encoding with that of the library.
func TestAppendResponseRandomly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rls.Answer{Overall: rls.Code(rapid.IntRange(0, 2).Draw(t, "overall")), Header: -1}
		text := fmt.Sprintf("overall_code: %d", a.Overall)
		for range rapid.IntRange(0, 5).Draw(t, "statuses") {
			s := rls.Status{
				Code: rls.Code(rapid.IntRange(0, 2).Draw(t, "code")), Limited: rapid.Bool().Draw(t, "limited"),
				Remaining: rapid.Uint32().Draw(t, "remaining"),
			}
			text += fmt.Sprintf(" statuses { code: %d limit_remaining: %d", s.Code, s.Remaining)
			if s.Limited {
				s.Requests, s.Unit = rapid.Uint32().Draw(t, "requests"), rls.Unit(rapid.IntRange(0, 7).Draw(t, "unit"))
				s.Name, s.Reset = rapid.StringMatching("[a-z]{0,300}").Draw(t, "name"), rapid.Int64Range(0, math.MaxInt64).Draw(t, "reset")
				text += fmt.Sprintf(" current_limit { requests_per_unit: %d unit: %d name: %q } duration_until_reset { seconds: %d }", s.Requests, s.Unit, s.Name, s.Reset)
			}
			text += " }"
			a.Statuses = append(a.Statuses, s)
		}
		rlstest.Same(t, "Response", text, wire.AppendResponse(nil, &a, wire.Headers{}))
	})
}

// FuzzDecode checks that any bytes are decoded or refused as the library does, within the bounds of requests.
func FuzzDecode(f *testing.F) {
	f.Add(rlstest.Encode(f, "Request", `domain: "d" descriptors { entries { key: "a" value: "b" } limit { requests_per_unit: 7 unit: 2 } hits_addend { value: 3 } } hits_addend: 5`))
	f.Add([]byte("\x7b\x78\x01\x7c\x0a\x01d"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r rls.Request
		err := wire.Decode(b, &r)
		m := messages.New("Request")
		if other := proto.Unmarshal(b, m); err != nil || other != nil {
			if err == nil {
				require.ErrorContains(t, other, "invalid UTF-8") // which the service takes
				return
			}
			bounds := errors.Is(err, wire.ErrTooLong) || errors.Is(err, rls.ErrDescriptors) || errors.Is(err, rls.ErrEntries)
			require.True(t, bounds || (err != nil) == (other != nil), "%v and %v", err, other)
			return
		}
		again := messages.New("Request")
		set := func(m protoreflect.Message, name string, v any) {
			m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOf(v))
		}
		set(again, "domain", string(r.Domain))
		set(again, "hits_addend", uint32(r.Hits))
		list := again.Mutable(again.Descriptor().Fields().ByName("descriptors")).List()
		for i := range r.Descriptors {
			d := &r.Descriptors[i]
			is := list.AppendMutable().Message()
			entries := is.Mutable(is.Descriptor().Fields().ByName("entries")).List()
			for _, e := range d.Entries {
				entry := entries.AppendMutable().Message()
				set(entry, "key", string(e.Key))
				set(entry, "value", string(e.Value))
			}
			if d.HasOwn {
				own := is.Mutable(is.Descriptor().Fields().ByName("limit")).Message()
				set(own, "requests_per_unit", d.Own.Requests)
				set(own, "unit", protoreflect.EnumNumber(d.Own.Unit))
			}
			if d.HasHits {
				hits := is.Mutable(is.Descriptor().Fields().ByName("hits_addend")).Message()
				set(hits, "value", d.Hits)
			}
		}
		discard := proto.UnmarshalOptions{DiscardUnknown: true}
		known := messages.New("Request")
		require.NoError(t, discard.Unmarshal(b, known))
		require.True(t, proto.Equal(known, again), "%s\n%s", prototext.Format(known), prototext.Format(again))
	})
}

func BenchmarkDecode(b *testing.B) {
	message := rlstest.Encode(b, "Request", `domain: "d" descriptors { entries { key: "a" value: "b" } entries { key: "c" value: "d" } }`)
	var r rls.Request
	b.ReportAllocs()
	for b.Loop() {
		_ = wire.Decode(message, &r)
	}
}

func BenchmarkAppendResponse(b *testing.B) {
	a := rls.Answer{Overall: rls.OK, Header: -1, Statuses: []rls.Status{{Code: rls.OK, Limited: true, Requests: 100, Unit: 2, Remaining: 99, Reset: 30}}}
	out := make([]byte, 0, 100)
	b.ReportAllocs()
	for b.Loop() {
		out = wire.AppendResponse(out[:0], &a, wire.Headers{})
	}
}
