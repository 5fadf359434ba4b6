// Package rlstest encodes and decodes the messages of Envoy's rate limit service for tests, from and to texts.
package rlstest

import (
	"bytes"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/cellserver/cellserver/rls/messages"
)

// Encode returns the bytes of the message called name with the given text.
func Encode(t require.TestingT, name, text string) []byte {
	m := messages.New(name)
	require.NoError(t, prototext.Unmarshal([]byte(text), m), "%s", text)
	b, err := proto.Marshal(m)
	require.NoError(t, err)
	return b
}

// Decode returns the text of the message called name in b, without the spaces that the library varies.
func Decode(t require.TestingT, name string, b []byte) string {
	m := messages.New(name)
	require.NoError(t, proto.Unmarshal(b, m))
	return spaceless(prototext.MarshalOptions{}.Format(m))
}

// Same requires that b is the message called name with the given text.
func Same(t require.TestingT, name, text string, b []byte) {
	require.Equal(t, Decode(t, name, Encode(t, name, text)), Decode(t, name, b))
}

func spaceless(text string) string {
	return string(bytes.Join(bytes.Fields([]byte(text)), []byte(" ")))
}
