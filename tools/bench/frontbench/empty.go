package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof" // the number of allocations, see mallocs
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
	"github.com/cellserver/cellserver/rls/wire"
)

// serveEmpty serves handlers that decide nothing, by gRPC and by HTTP, until the process is killed.
func serveEmpty(args []string) error {
	set := flag.NewFlagSet("frontbench empty", flag.ContinueOnError)
	overGRPC := set.String("grpc", "", "address for gRPC")
	overHTTP := set.String("http", "", "address for HTTP")
	if err := set.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", *overGRPC)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec{}))
	server.RegisterService(&emptyService, nil)
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(l) }()
	http.HandleFunc("/", answerNothing)
	go func() { failed <- http.ListenAndServe(*overHTTP, nil) }() //nolint:gosec // a client without an end is the load's
	return <-failed
}

// codec copies messages as rls-port does.
type codec struct{}

// Name implements [encoding.CodecV2].
func (codec) Name() string { return "proto" }

// Unmarshal implements [encoding.CodecV2].
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*message)
	if !ok {
		return errors.New("no message")
	}
	m.bytes = m.bytes[:0]
	for _, b := range data {
		m.bytes = append(m.bytes, b.ReadOnlyData()...)
	}
	return nil
}

// Marshal implements [encoding.CodecV2].
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*message)
	if !ok {
		return nil, errors.New("no message")
	}
	out := mem.BufferSlice{mem.Copy(m.bytes, mem.DefaultBufferPool())}
	if m.pooled {
		pool.Put(m)
	}
	return out, nil
}

// message has the bytes of a message as it is sent. A message from the pool can be used again when
// it has been sent.
type message struct {
	bytes  []byte
	pooled bool
}

var pool = sync.Pool{New: func() any { return &message{pooled: true} }}

const (
	service = "envoy.service.ratelimit.v3.RateLimitService"
	method  = "/" + service + "/ShouldRateLimit"
)

// emptyService has the method of rls-port with a handler that decides nothing.
var emptyService = grpc.ServiceDesc{
	ServiceName: service, HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: shouldRateLimit}},
}

// passed is the response of the empty handlers. It has the length of a response for one descriptor.
var passed = wire.AppendResponse(nil, &rls.Answer{
	Overall: rls.OK, Header: -1,
	Statuses: []rls.Status{{Code: rls.OK, Limited: true, Requests: perHour, Unit: rulefile.Hour, Remaining: perHour - 1, Reset: 3600}},
}, wire.Headers{})

func shouldRateLimit(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the order of grpc-go
	m := pool.Get().(*message)
	if err := decode(m); err != nil {
		return nil, err
	}
	m.bytes = append(m.bytes[:0], passed...)
	return m, nil
}

func answerNothing(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // an error means that the load has ended
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"allowed":true,"limit":4000000000,"remaining":3999999999}`+"\n") // an error means that the load has ended
}
