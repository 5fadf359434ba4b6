package scripting

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
)

// onceHost runs a coroutine at once on the caller's goroutine.
type onceHost struct {
	command.Exclusives
	ran *invocation
}

func (h *onceHost) StopWorld(*command.Call) bool { return true }

func (h *onceHost) RunOnCoroutine(_ *command.Call, _ *command.Coroutine, arg any) bool {
	call := *arg.(*invocation)
	h.ran = &call
	return false
}

// TestWorkerForgetsTheCallOfACoroutine: the worker keeps no reference to the arguments of a call,
// because these refer to the input of the client, which may be megabytes.
func TestWorkerForgetsTheCallOfACoroutine(t *testing.T) {
	host := &onceHost{}
	c := &command.Call{Worker: &command.Worker{Server: &command.Server{Host: command.Host{Exclusives: host}}}, Client: &command.Client{}}
	k := &worker{call: invocation{script: &script{}, keys: [][]byte{[]byte("key")}}}
	k.runOnCoroutine(c)
	require.Len(t, host.ran.keys, 1)
	require.Zero(t, k.call)
}
