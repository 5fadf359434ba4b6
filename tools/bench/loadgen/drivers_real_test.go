//go:build real

package loadgen_test

import (
	"path/filepath"
	"testing"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/fakeresp"
)

// TestDriversOverSockets: each driver of this system passes over real sockets the tests that the
// goroutine driver passes in virtual time.
func TestDriversOverSockets(t *testing.T) {
	for _, driver := range loadgen.Drivers() {
		for _, network := range []string{"tcp", "unix"} {
			start := func(t *testing.T, handle fakeresp.Handler) loadgen.Target {
				t.Helper()
				address := "127.0.0.1:0"
				if network == "unix" {
					address = filepath.Join(t.TempDir(), "s")
				}
				return targetAt(t, fakeresp.Start(t, network, address, handle))
			}
			for name, test := range suite {
				t.Run(driver+" "+network+"/"+name, func(t *testing.T) { test(t, rig{driver: driver, start: start}) })
			}
		}
	}
}
