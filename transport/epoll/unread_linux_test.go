package epoll_test

import (
	"testing"

	"github.com/cellserver/cellserver/transport/epoll"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func TestKeptInputIsWhatArrived(t *testing.T) { transporttest.TestKeptInput(t, epoll.NewKeptInput()) }

func TestLongInputTakesWhatHasArrived(t *testing.T) {
	transporttest.TestLongInput(t, epoll.NewKeptInput())
}
