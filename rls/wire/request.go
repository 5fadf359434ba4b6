package wire

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cellserver/cellserver/rls"
)

// MaxRequest is the maximum size of a request in bytes. Envoy lets header fields of 60 KiB pass, which a descriptor may contain
// several times, and lets the request of its client pass if this service answers with an error.
const MaxRequest = 1 << 20

// These are the errors of Decode, in addition to [rls.ErrDescriptors] and [rls.ErrEntries].
var (
	// ErrRequest means that a message is not a RateLimitRequest.
	ErrRequest = errors.New("the message is not a RateLimitRequest")
	// ErrTooLong means that a message is longer than MaxRequest.
	ErrTooLong = errors.New("a request has at most 1048576 bytes")
)

// These are the numbers of fields in the messages of a request.
const (
	requestDomain      protowire.Number = 1
	requestDescriptors protowire.Number = 2
	requestHits        protowire.Number = 3

	descriptorEntries protowire.Number = 1
	descriptorLimit   protowire.Number = 2
	descriptorHits    protowire.Number = 3

	entryKey   protowire.Number = 1
	entryValue protowire.Number = 2

	ownRequests protowire.Number = 1
	ownUnit     protowire.Number = 2

	wrapped protowire.Number = 1 // number of the field value of a UInt64Value
)

// Decode sets r to the RateLimitRequest in message, and reuses the memory of r. The texts of r refer to message. Unknown
// fields are skipped, and of a repeated field that stands for one value the last counts. Texts need not be UTF-8, because clients choose
// them and an error would let their requests pass. The errors are [ErrRequest], [ErrTooLong], [rls.ErrDescriptors] and
// [rls.ErrEntries].
func Decode(message []byte, r *rls.Request) error {
	r.Domain, r.Descriptors, r.Hits = nil, r.Descriptors[:0], 0
	if len(message) > MaxRequest {
		return ErrTooLong
	}
	return fields(message, func(f field) (err error) {
		switch {
		case f.is(requestDomain, protowire.BytesType):
			r.Domain = f.bytes
		case f.is(requestHits, protowire.VarintType):
			r.Hits = uint64(uint32(f.number))
		case f.is(requestDescriptors, protowire.BytesType):
			n := len(r.Descriptors)
			if n == rls.MaxDescriptors {
				return rls.ErrDescriptors
			}
			if n < cap(r.Descriptors) {
				r.Descriptors = r.Descriptors[:n+1]
			} else {
				r.Descriptors = append(r.Descriptors, rls.Descriptor{})
			}
			err = descriptor(f.bytes, &r.Descriptors[n])
		}
		return err
	})
}

// descriptor sets d to the RateLimitDescriptor in message. It reuses the memory of the entries of d.
func descriptor(message []byte, d *rls.Descriptor) error {
	*d = rls.Descriptor{Entries: d.Entries[:0]}
	return fields(message, func(f field) error {
		switch {
		case f.is(descriptorEntries, protowire.BytesType):
			if len(d.Entries) == rls.MaxEntries {
				return rls.ErrEntries
			}
			e, err := entry(f.bytes)
			d.Entries = append(d.Entries, e)
			return err
		case f.is(descriptorLimit, protowire.BytesType):
			d.HasOwn = true // protobuf merges a second message with the first
			return fields(f.bytes, func(f field) error {
				switch {
				case f.is(ownRequests, protowire.VarintType):
					d.Own.Requests = uint32(f.number)
				case f.is(ownUnit, protowire.VarintType):
					d.Own.Unit = int32(f.number)
				}
				return nil
			})
		case f.is(descriptorHits, protowire.BytesType):
			d.HasHits = true
			return fields(f.bytes, func(f field) error {
				if f.is(wrapped, protowire.VarintType) {
					d.Hits = f.number
				}
				return nil
			})
		}
		return nil
	})
}

// entry decodes message into an Entry.
func entry(message []byte) (e rls.Entry, err error) {
	err = fields(message, func(f field) error {
		switch {
		case f.is(entryKey, protowire.BytesType):
			e.Key = f.bytes
		case f.is(entryValue, protowire.BytesType):
			e.Value = f.bytes
		}
		return nil
	})
	return e, err
}

// field is a field of a message.
type field struct {
	of     protowire.Number
	kind   protowire.Type
	number uint64 // the value of a field that is a varint
	bytes  []byte // the value of a field that is bytes
}

// is reports whether f has the number n and the type kind. A field with another type counts as unknown.
func (f *field) is(n protowire.Number, kind protowire.Type) bool { return f.of == n && f.kind == kind }

// fields calls each with the fields of message, until one of the calls returns an error. It returns this error, or
// [ErrRequest] if message is not valid.
func fields(message []byte, each func(f field) error) error {
	for len(message) > 0 {
		var f field
		n := 0
		if f.of, f.kind, n = protowire.ConsumeTag(message); n < 0 || !f.of.IsValid() {
			return ErrRequest
		}
		message = message[n:]
		switch f.kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(f.of, f.kind, message)
		}
		if n < 0 {
			return ErrRequest
		}
		message = message[n:]
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}
