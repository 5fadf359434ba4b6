package envoy

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// named is the name of the service in Envoy's health checks of ratelimit. The name "" stands for the whole server.
const named = "ratelimit"

// healthServer is the health service. Check reports the present state, and Watch the state at the latest look.
type healthServer struct {
	*health.Server
	ready func() string
}

// look notes the present state, for the calls of Watch.
func (h *healthServer) look() {
	is := h.state()
	h.SetServingStatus("", is)
	h.SetServingStatus(named, is)
}

func (h *healthServer) state() grpc_health_v1.HealthCheckResponse_ServingStatus {
	if h.ready() == "" {
		return grpc_health_v1.HealthCheckResponse_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_NOT_SERVING
}

// Check implements [grpc_health_v1.HealthServer].
func (h *healthServer) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if r.GetService() != "" && r.GetService() != named {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return &grpc_health_v1.HealthCheckResponse{Status: h.state()}, nil
}
