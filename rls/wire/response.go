package wire

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cellserver/cellserver/rls"
)

// Headers are the names of the header fields of an answer; all are "" if it has none.
type Headers struct{ Limit, Remaining, Reset string }

// These are the numbers of fields in the messages of a response.
const (
	responseOverall  protowire.Number = 1
	responseStatuses protowire.Number = 2
	responseHeaders  protowire.Number = 3
	responseMetadata protowire.Number = 6

	statusCode      protowire.Number = 1
	statusLimit     protowire.Number = 2
	statusRemaining protowire.Number = 3
	statusReset     protowire.Number = 4

	limitRequests protowire.Number = 1
	limitUnit     protowire.Number = 2
	limitName     protowire.Number = 3

	durationSeconds protowire.Number = 1

	headerKey   protowire.Number = 1
	headerValue protowire.Number = 2
)

// AppendResponse appends the RateLimitResponse for a to dst. The header fields show the status a.Header.
func AppendResponse(dst []byte, a *rls.Answer, h Headers) []byte {
	dst = appendNumber(dst, responseOverall, uint64(a.Overall))
	for i := range a.Statuses {
		dst = appendMessage(dst, responseStatuses, func(dst []byte) []byte { return appendStatus(dst, &a.Statuses[i]) })
	}
	if a.Header >= 0 {
		s := &a.Statuses[a.Header]
		for _, of := range [...]struct {
			name  string
			value int64
		}{{h.Limit, int64(s.Requests)}, {h.Remaining, int64(s.Remaining)}, {h.Reset, s.Reset}} {
			var digits [20]byte
			dst = appendHeader(dst, of.name, strconv.AppendInt(digits[:0], of.value, 10))
		}
	}
	if a.Metadata != nil {
		dst = appendMessage(dst, responseMetadata, func(dst []byte) []byte { return appendStruct(dst, a.Metadata) })
	}
	return dst
}

// AppendFields appends header fields to dst, a RateLimitResponse without any.
func AppendFields(dst []byte, fields []rls.Field) []byte {
	for i := range fields {
		dst = appendHeader(dst, fields[i].Name, fields[i].Value)
	}
	return dst
}

func appendStatus(dst []byte, s *rls.Status) []byte {
	dst = appendNumber(dst, statusCode, uint64(s.Code))
	if s.Limited {
		dst = appendMessage(dst, statusLimit, func(dst []byte) []byte {
			dst = appendNumber(dst, limitRequests, uint64(s.Requests))
			dst = appendNumber(dst, limitUnit, uint64(s.Unit))
			return appendText(dst, limitName, s.Name)
		})
	}
	dst = appendNumber(dst, statusRemaining, uint64(s.Remaining))
	if s.Limited {
		dst = appendMessage(dst, statusReset, func(dst []byte) []byte { return appendNumber(dst, durationSeconds, uint64(s.Reset)) })
	}
	return dst
}

func appendHeader(dst []byte, name string, value []byte) []byte {
	return appendMessage(dst, responseHeaders, func(dst []byte) []byte {
		dst = appendText(dst, headerKey, name)
		return protowire.AppendBytes(protowire.AppendTag(dst, headerValue, protowire.BytesType), value)
	})
}

// These are the numbers of the fields of the messages Struct, Value and ListValue, and of an element of a map.
const (
	structFields protowire.Number = 1

	elementKey   protowire.Number = 1
	elementValue protowire.Number = 2

	valueNull   protowire.Number = 1
	valueNumber protowire.Number = 2
	valueText   protowire.Number = 3
	valueBool   protowire.Number = 4
	valueStruct protowire.Number = 5
	valueList   protowire.Number = 6

	listValues protowire.Number = 1
)

func appendStruct(dst []byte, s rls.Struct) []byte {
	for _, f := range s {
		dst = appendMessage(dst, structFields, func(dst []byte) []byte {
			dst = appendText(dst, elementKey, f.Name)
			return appendMessage(dst, elementValue, func(dst []byte) []byte { return appendValue(dst, f.Value) })
		})
	}
	return dst
}

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return protowire.AppendVarint(protowire.AppendTag(dst, valueNull, protowire.VarintType), 0)
	case float64:
		return protowire.AppendFixed64(protowire.AppendTag(dst, valueNumber, protowire.Fixed64Type), math.Float64bits(v))
	case string:
		return protowire.AppendString(protowire.AppendTag(dst, valueText, protowire.BytesType), v)
	case bool:
		return protowire.AppendVarint(protowire.AppendTag(dst, valueBool, protowire.VarintType), protowire.EncodeBool(v))
	case rls.Struct:
		return appendMessage(dst, valueStruct, func(dst []byte) []byte { return appendStruct(dst, v) })
	case []any:
		return appendMessage(dst, valueList, func(dst []byte) []byte {
			for _, e := range v {
				dst = appendMessage(dst, listValues, func(dst []byte) []byte { return appendValue(dst, e) })
			}
			return dst
		})
	}
	return dst // a Struct has no values of other types
}

// appendNumber appends the field with the number of and the value n. It appends nothing if n is 0.
func appendNumber(dst []byte, of protowire.Number, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, of, protowire.VarintType), n)
}

// appendText appends the field with the number of and the value text. It appends nothing if text is
// empty.
func appendText(dst []byte, of protowire.Number, text string) []byte {
	if text == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, of, protowire.BytesType), text)
}

// appendMessage appends the field with the number of, whose value is the message that fill appends. The length is in
// front of the message, and most are shorter than 128 bytes, so one byte is kept free for the length, and the message
// is moved if that is too little.
func appendMessage(dst []byte, of protowire.Number, fill func(dst []byte) []byte) []byte {
	dst = append(protowire.AppendTag(dst, of, protowire.BytesType), 0)
	from := len(dst)
	dst = fill(dst)
	n := len(dst) - from
	size := protowire.SizeVarint(uint64(n))
	if size > 1 {
		for range size - 1 {
			dst = append(dst, 0)
		}
		copy(dst[from+size-1:], dst[from:from+n])
	}
	_ = protowire.AppendVarint(dst[:from-1], uint64(n))
	return dst
}
