//go:build real

package compat_test

import (
	"net"
	"testing"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
)

// TestScriptsOverSockets plays every script over sockets of this machine, and so over event
// loops where it has them, which no bubble has.
func TestScriptsOverSockets(t *testing.T) {
	for _, s := range loadScripts(t, "cellserver") {
		t.Run(s.Name, func(t *testing.T) {
			for _, section := range s.Sections {
				for _, proto := range section.Protocols {
					t.Run(section.RunName(proto), func(t *testing.T) {
						t.Parallel()
						server := inproc.Start(t, scriptStart, inproc.SectionOptions(section, t.TempDir())...)
						dial := func() (net.Conn, error) { return net.Dial("tcp", server.Addr().String()) }
						playSection(t, s, section, proto, script.Target{Dial: dial, Clock: server.Clock, Put: inproc.PutKinds(server.Put)}, nil)
					})
				}
			}
		})
	}
}
