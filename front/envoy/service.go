package envoy

import (
	"context"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of the health service
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/rls/wire"
)

// services describe to grpc-go the rate limit service of Envoy and that of Limitador, with the same messages.
var services = [...]grpc.ServiceDesc{
	{
		ServiceName: "envoy.service.ratelimit.v3.RateLimitService",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: handler((*descriptors.Service).Answer)}},
		Metadata:    "envoy/service/ratelimit/v3/rls.proto",
	},
	{
		ServiceName: "kuadrant.service.ratelimit.v1.RateLimitService",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "CheckRateLimit", Handler: handler(checkLimits)}, {MethodName: "Report", Handler: handler(reportHits)}},
		Metadata:    "ratelimit.proto",
	},
}

// checkLimits answers a call of CheckRateLimit, which is about one hit, whatever the request says.
func checkLimits(s *descriptors.Service, c *descriptors.Call, by descriptors.Caller) error {
	return s.AnswerLimits(c, descriptors.Check, 1, false, by) //nolint:wrapcheck // its text is that of the status
}

// reportHits answers a call of Report.
func reportHits(s *descriptors.Service, c *descriptors.Call, by descriptors.Caller) error {
	return s.AnswerLimits(c, descriptors.Report, max(c.Request.Hits, 1), false, by) //nolint:wrapcheck // its text is that of the status
}

// message is first a request, and then its response. After the first calls a message allocates no
// memory.
type message struct {
	in, out []byte
	call    descriptors.Call

	of *Server
	by *client
	// late closes the connection of the call if the request has not arrived within messageTime.
	late *time.Timer
}

// newMessage returns an any for the pool of s.
func (s *Server) newMessage() any {
	m := &message{of: s}
	m.late = time.AfterFunc(math.MaxInt64, func() { m.by.hangup() }) // the duration is a placeholder, which each call sets anew
	return m
}

// maxPooled is the maximum size of a buffer that is kept for further messages, in bytes.
const maxPooled = 8 << 10

func (m *message) recycle() {
	m.by = nil
	if cap(m.in) <= maxPooled && cap(m.out) <= maxPooled && m.call.Bytes() <= 8*maxPooled {
		m.of.messages.Put(m)
	}
}

// codec passes the bytes of messages through unchanged. For messages of the health service it uses the codec of the
// library.
type codec struct{}

// Name implements [encoding.CodecV2].
func (codec) Name() string { return "proto" }

// Unmarshal implements [encoding.CodecV2]. It copies a request, which the handler decodes.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*message)
	if !ok {
		return encoding.GetCodecV2("proto").Unmarshal(data, v) //nolint:wrapcheck // the codec of the library
	}
	m.in = m.in[:0]
	for _, b := range data {
		m.in = append(m.in, b.ReadOnlyData()...)
	}
	return nil
}

// Marshal implements [encoding.CodecV2].
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*message)
	if !ok {
		return encoding.GetCodecV2("proto").Marshal(v) //nolint:wrapcheck // the codec of the library
	}
	out := mem.BufferSlice{mem.Copy(m.out, answers{m.by})}
	m.recycle()
	return out, nil
}

// errKept is the error of a call if the other calls and answers of its connection take maxKept.
var errKept = status.Errorf(codes.ResourceExhausted, "the calls of the connection and its unread answers take more than %d MiB", maxKept>>20)

// messageCopies is the number of copies of a request in memory while its call runs: its bytes, its decoded form, and
// the answer.
const messageCopies = 3

// answering answers the request of a call by calls of a client.
type answering = func(s *descriptors.Service, c *descriptors.Call, by descriptors.Caller) error

// handler returns the handler of a method whose calls answer answers.
func handler(answer answering) grpc.MethodHandler {
	return func(of any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		s, p := of.(*Server), peerOf(ctx)
		m := s.messages.Get().(*message)
		m.by = p
		m.late.Reset(messageTime)
		err := decode(m) // decode waits until the message has arrived
		if !m.late.Stop() {
			return nil, errLate // m is not reused, because late may still refer to it
		}
		s.calls.Begin()
		defer s.calls.End()
		takes := int64(messageCopies * len(m.in))
		if others := p.running.Add(takes) - takes; err == nil && others > maxKept {
			err = errKept
		} else if err == nil {
			if err = m.answer(s.config.Service, answer); err != nil {
				err = status.Error(statuses[descriptors.CodeOf(err)], err.Error())
			}
		}
		p.running.Add(-takes)
		if err != nil {
			m.recycle()
			return nil, err
		}
		return m, nil // Marshal returns m for reuse
	}
}

// errLate is the error of a call whose message did not arrive in time. Its connection is closed.
var errLate = status.Error(codes.DeadlineExceeded, "the message of the call did not come in time")

// peerOf returns the client of the connection that a call came from.
func peerOf(ctx context.Context) *client {
	p, _ := peer.FromContext(ctx)
	return p.AuthInfo.(*client)
}

// answer sets out to the response of s to the request in m.in.
func (m *message) answer(s *descriptors.Service, answer answering) error {
	if err := wire.Decode(m.in, &m.call.Request); err != nil {
		s.Counts.Refused()
		return fmt.Errorf("%w: %w", descriptors.ErrMessage, err)
	}
	if err := answer(s, &m.call, m.by); err != nil {
		return err
	}
	m.out = m.call.AppendResponse(m.out[:0])
	return nil
}

// statuses has the code of gRPC for each code of the counts.
var statuses = [...]codes.Code{
	descriptors.InvalidArgument:  codes.InvalidArgument,
	descriptors.PermissionDenied: codes.PermissionDenied,
	descriptors.Unknown:          codes.Unknown,
	descriptors.Unavailable:      codes.Unavailable,
}
