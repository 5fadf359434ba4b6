package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInfoInsideExec(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		c.send("MULTI\r\nCL.THROTTLE k 1 1 1\r\nINFO\r\nEXEC\r\n")
		c.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
		require.Contains(t, c.reply(), "db0:keys=1,expires=1")
	})
}
