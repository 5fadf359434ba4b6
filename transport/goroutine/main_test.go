package goroutine_test

import (
	"os"
	"testing"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/goroutine"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func TestMain(m *testing.M) { os.Exit(transporttest.RunTests(m)) }

func newGoroutine(h transport.Handler, lim transport.Limits, clock *transporttest.Clock) transport.Transport {
	return goroutine.New(h, lim, transporttest.Quiet, clock.Now)
}
