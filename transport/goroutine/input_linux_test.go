package goroutine_test

import (
	"testing"

	"github.com/cellserver/cellserver/transport/goroutine"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func TestKeptInputIsWhatArrived(t *testing.T) {
	transporttest.TestKeptInput(t, goroutine.NewKeptInput())
}

func TestLongInputTakesWhatHasArrived(t *testing.T) {
	transporttest.TestLongInput(t, goroutine.NewKeptInput())
}
