// Package grpclimit is interceptors for servers of gRPC that limit calls by a cellserver.
//
// [Unary] and [Stream] ask about each call once; a stream counts when it begins. A [Key] says for whom a call counts: [IP],
// [Metadata], [Method], [Combine] or a function of the application. A call beyond the limit gets the code ResourceExhausted, and one that is
// refused because the server is away Unavailable. Both have a RetryInfo, except for a call that can never pass.
//
// It is a module of its own, so that programs without gRPC do not get its dependencies.
package grpclimit

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/cellserver/cellserver/clients/go/limit"
)

// Option changes an interceptor.
type Option func(*interceptor)

// Cost has each call take the units that f returns, and not 1. request is nil for a stream. A call whose cost is negative gets the code
// Internal, since it would give units back.
func Cost(f func(ctx context.Context, method string, request any) int64) Option {
	return func(i *interceptor) { i.cost = f }
}

// Skip lets calls pass unasked for which f returns true, such as health checks.
func Skip(f func(ctx context.Context, method string) bool) Option {
	return func(i *interceptor) { i.skip = f }
}

// Member has each call hold the place that f names, for policies with CC.
func Member(f func(ctx context.Context, method string) string) Option {
	return func(i *interceptor) { i.member = f }
}

// Log is where faults of the program are logged, with the code Internal. The default is slog.Default().
func Log(l *slog.Logger) Option { return func(i *interceptor) { i.log = l } }

type interceptor struct {
	limiter *limit.Limiter
	key     Key
	log     *slog.Logger
	cost    func(ctx context.Context, method string, request any) int64
	skip    func(ctx context.Context, method string) bool
	member  func(ctx context.Context, method string) string
}

func newInterceptor(l *limit.Limiter, key Key, options []Option) *interceptor {
	i := &interceptor{
		limiter: l, key: key, log: slog.Default(),
		cost:   func(context.Context, string, any) int64 { return 1 },
		skip:   func(context.Context, string) bool { return false },
		member: func(context.Context, string) string { return "" },
	}
	for _, o := range options {
		o(i)
	}
	return i
}

// Unary returns an interceptor that asks l about each unary call.
func Unary(l *limit.Limiter, key Key, options ...Option) grpc.UnaryServerInterceptor {
	i := newInterceptor(l, key, options)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if err := i.admit(ctx, info.FullMethod, request); err != nil {
			return nil, err
		}
		return next(ctx, request)
	}
}

// Stream returns an interceptor that asks l when a stream begins.
func Stream(l *limit.Limiter, key Key, options ...Option) grpc.StreamServerInterceptor {
	i := newInterceptor(l, key, options)
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if err := i.admit(stream.Context(), info.FullMethod, nil); err != nil {
			return err
		}
		return next(server, stream)
	}
}

// admit returns nil if the call may go ahead, and otherwise the status of its refusal.
func (i *interceptor) admit(ctx context.Context, method string, request any) error {
	if i.skip(ctx, method) {
		return nil
	}
	key, err := i.key(ctx, method)
	if err != nil {
		return i.fault(ctx, err)
	}
	if key == "" {
		return nil
	}
	cost := i.cost(ctx, method, request)
	if cost < 0 {
		return i.fault(ctx, fmt.Errorf("grpclimit: a cost of %d", cost))
	}
	res, err := i.limiter.Take(ctx, limit.Call{Key: key, Cost: cost, Member: i.member(ctx, method)})
	switch {
	case err != nil && ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case err != nil:
		return i.fault(ctx, err)
	case res.Allowed:
		return nil
	case res.Source == limit.Unavailable:
		return refusal(codes.Unavailable, "the limiter is not available", retryIn(time.Second))
	}
	return i.denial(&res)
}

// quotaStatus is the status of the problem whose parts the denial has.
const quotaStatus = 429

// denial returns the status of a call beyond the limit, with the time after which it would pass and the policies in the way.
func (i *interceptor) denial(res *limit.Result) error {
	p := i.limiter.Problem(res, quotaStatus)
	text := p.Title
	if p.Detail != "" {
		text = p.Detail
	}
	quota := &errdetails.QuotaFailure{}
	for _, name := range p.Violated {
		quota.Violations = append(quota.Violations, &errdetails.QuotaFailure_Violation{Subject: "policy:" + name, Description: text})
	}
	details := []protoadapt.MessageV1{quota}
	if res.RetryAfter != limit.None {
		details = append(details, retryIn(res.RetryAfter))
	}
	return refusal(codes.ResourceExhausted, text, details...)
}

func retryIn(d time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
}

// refusal returns a status with details.
func refusal(code codes.Code, text string, details ...protoadapt.MessageV1) error {
	s := status.New(code, text)
	if detailed, err := s.WithDetails(details...); err == nil {
		s = detailed
	}
	return s.Err()
}

// fault returns the status of a call that could not be decided by a fault of the program.
func (i *interceptor) fault(ctx context.Context, err error) error {
	i.log.ErrorContext(ctx, "call not limited", "error", err)
	return status.Error(codes.Internal, "the call could not be limited")
}
