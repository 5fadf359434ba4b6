// Package messages translates the messages of Envoy's rate limit service from and to JSON.
//
// It describes the messages to the library of protocol buffers. Package wire reads and writes the same messages without the library, because its messages allocate memory for each field.
package messages

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	// The messages refer to these types.
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// described has the fields of Envoy's messages that the service uses, by their published names and numbers.
const described = `
name: "rls.proto" package: "rls" syntax: "proto3"
dependency: "google/protobuf/duration.proto" dependency: "google/protobuf/struct.proto" dependency: "google/protobuf/wrappers.proto"
message_type {
  name: "Request"
  field { name: "domain" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "descriptors" number: 2 type: TYPE_MESSAGE type_name: ".rls.Descriptor" label: LABEL_REPEATED }
  field { name: "hits_addend" number: 3 type: TYPE_UINT32 label: LABEL_OPTIONAL }
}
message_type {
  name: "Entry"
  field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
}
message_type {
  name: "Own"
  field { name: "requests_per_unit" number: 1 type: TYPE_UINT32 label: LABEL_OPTIONAL }
  field { name: "unit" number: 2 type: TYPE_ENUM type_name: ".rls.Unit" label: LABEL_OPTIONAL }
}
message_type {
  name: "Descriptor"
  field { name: "entries" number: 1 type: TYPE_MESSAGE type_name: ".rls.Entry" label: LABEL_REPEATED }
  field { name: "limit" number: 2 type: TYPE_MESSAGE type_name: ".rls.Own" label: LABEL_OPTIONAL }
  field { name: "hits_addend" number: 3 type: TYPE_MESSAGE type_name: ".google.protobuf.UInt64Value" label: LABEL_OPTIONAL }
}
message_type {
  name: "Limit"
  field { name: "requests_per_unit" number: 1 type: TYPE_UINT32 label: LABEL_OPTIONAL }
  field { name: "unit" number: 2 type: TYPE_ENUM type_name: ".rls.Unit" label: LABEL_OPTIONAL }
  field { name: "name" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
}
message_type {
  name: "Status"
  field { name: "code" number: 1 type: TYPE_ENUM type_name: ".rls.Code" label: LABEL_OPTIONAL }
  field { name: "current_limit" number: 2 type: TYPE_MESSAGE type_name: ".rls.Limit" label: LABEL_OPTIONAL }
  field { name: "limit_remaining" number: 3 type: TYPE_UINT32 label: LABEL_OPTIONAL }
  field { name: "duration_until_reset" number: 4 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL }
}
message_type {
  name: "Header"
  field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
}
message_type {
  name: "Response"
  field { name: "overall_code" number: 1 type: TYPE_ENUM type_name: ".rls.Code" label: LABEL_OPTIONAL }
  field { name: "statuses" number: 2 type: TYPE_MESSAGE type_name: ".rls.Status" label: LABEL_REPEATED }
  field { name: "response_headers_to_add" number: 3 type: TYPE_MESSAGE type_name: ".rls.Header" label: LABEL_REPEATED }
  field { name: "dynamic_metadata" number: 6 type: TYPE_MESSAGE type_name: ".google.protobuf.Struct" label: LABEL_OPTIONAL }
}
enum_type {
  name: "Unit"
  value { name: "UNKNOWN" number: 0 }
  value { name: "SECOND" number: 1 }
  value { name: "MINUTE" number: 2 }
  value { name: "HOUR" number: 3 }
  value { name: "DAY" number: 4 }
  value { name: "MONTH" number: 5 }
  value { name: "YEAR" number: 6 }
  value { name: "WEEK" number: 7 }
}
enum_type {
  name: "Code"
  value { name: "CODE_UNKNOWN" number: 0 }
  value { name: "OK" number: 1 }
  value { name: "OVER_LIMIT" number: 2 }
}
`

// file has the descriptor of the file in described.
var file = sync.OnceValue(func() protoreflect.FileDescriptor {
	var is descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(described), &is); err != nil {
		panic("messages: " + err.Error())
	}
	f, err := protodesc.NewFile(&is, protoregistry.GlobalFiles)
	if err != nil {
		panic("messages: " + err.Error())
	}
	return f
})

// New returns an empty message, with the name Request, Response or the name of a part of these. It panics for any other
// name.
func New(name string) *dynamicpb.Message {
	return dynamicpb.NewMessage(file().Messages().ByName(protoreflect.Name(name)))
}

// ErrJSON means that a text is not a request in JSON.
var ErrJSON = errors.New("the text is no request in JSON")

// AppendRequest appends the request that text has in JSON to dst, as protocol buffers. The error is [ErrJSON], with what the
// library says. Fields that the service does not know are a fault, as in ratelimit.
func AppendRequest(dst, text []byte) ([]byte, error) {
	m := New("Request")
	if err := protojson.Unmarshal(text, m); err != nil {
		return dst, fmt.Errorf("%w: %w", ErrJSON, err)
	}
	out, err := proto.MarshalOptions{}.MarshalAppend(dst, m)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrJSON, err)
	}
	return out, nil
}

// AppendJSON appends the response in message, which are protocol buffers, to dst as JSON. The error says that message is no
// response, or that it has a text that is not valid UTF-8.
func AppendJSON(dst, message []byte) ([]byte, error) {
	m := New("Response")
	if err := proto.Unmarshal(message, m); err != nil {
		return dst, fmt.Errorf("reading the response: %w", err)
	}
	out, err := protojson.MarshalOptions{}.MarshalAppend(dst, m)
	if err != nil {
		return dst, fmt.Errorf("writing the response as JSON: %w", err)
	}
	return out, nil
}
