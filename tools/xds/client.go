package xds

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/client/sotw/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/anypb"
)

// Server is a server that uses the rules.
type Server interface {
	// Reload makes the server load the files of rules, and returns when they are in force. It waits for a server that
	// does not answer yet. The error says why the server has refused the files, or is the error of ctx.
	Reload(ctx context.Context) error
}

// Client gets rules from a control plane.
type Client struct {
	Settings  *Settings
	Directory *Directory
	Server    Server
	Log       *slog.Logger
	// Dial has further options of the connection.
	Dial []grpc.DialOption
}

// Run gets rules until ctx ends, and opens a stream that has ended again. The error says that the connection cannot be
// configured; that of a stream goes to the log.
func (c *Client) Run(ctx context.Context) error {
	options, err := c.Settings.dialOptions()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(c.Settings.Address, append(options, c.Dial...)...)
	if err != nil {
		return fmt.Errorf("CONFIG_GRPC_XDS_SERVER_URL: %w", err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be sent
	for wait := c.Settings.BackoffInitial; ; wait = min(2*wait, c.Settings.BackoffMax) {
		received, err := c.stream(ctx, conn)
		if ctx.Err() != nil {
			return nil
		}
		if received {
			wait = c.Settings.BackoffInitial
		}
		pause := wait
		if c.Settings.BackoffJitter {
			pause = wait/2 + rand.N(wait/2+1)
		}
		c.Log.Warn("the stream of the control plane has ended", "error", err, "retry", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// stream opens a stream and applies its responses until it ends. received says that there was a
// response.
func (c *Client) stream(ctx context.Context, conn *grpc.ClientConn) (received bool, err error) {
	// Each stream gets a new client, because the nonce of a response has no meaning for the next
	// stream.
	ads := sotw.NewADSClient(metadata.NewOutgoingContext(ctx, metadata.New(c.Settings.Headers)), c.Settings.node(), resource.RateLimitConfigType)
	if err := ads.InitConnect(conn, grpc.WaitForReady(true)); err != nil {
		return false, err //nolint:wrapcheck // a status of gRPC
	}
	for {
		response, err := ads.Fetch()
		if err != nil {
			return received, err //nolint:wrapcheck // a status of gRPC
		}
		received = true
		if refused := c.apply(ctx, response.Resources); refused != nil {
			if ctx.Err() != nil {
				return received, refused
			}
			c.Log.Error("the rules of the control plane were refused: those before stay in force", "error", refused)
			err = ads.Nack(refused.Error())
		} else {
			c.Log.Info("the rules of the control plane are in force", "resources", len(response.Resources))
			err = ads.Ack()
		}
		if err != nil {
			return received, err //nolint:wrapcheck // a status of gRPC
		}
	}
}

// apply puts the rules of resources in force. After an error the earlier rules and files remain.
func (c *Client) apply(ctx context.Context, resources []*anypb.Any) error {
	files, err := Files(resources)
	if err != nil {
		return err
	}
	back, err := c.Directory.Swap(files)
	if err != nil {
		return err
	}
	refused := c.Server.Reload(ctx)
	if refused != nil {
		if err := back(); err != nil {
			c.Log.Error("the rules before could not be put back", "error", err)
		}
	}
	if err := c.Directory.Tidy(); err != nil {
		c.Log.Warn("old rules were not removed", "error", err)
	}
	return refused
}
