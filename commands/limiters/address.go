package limiters

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
)

// noAddress returns the error of a call whose key is not an address, although the policy p has KEY
// IP.
func noAddress(p *policy.Policy, key []byte) resp.Error {
	return resp.Error("NOADDRESS '" + string(command.Echo(key, command.MaxEcho)) + "' is no IP address, which policy '" + p.Name +
		"' needs as its key")
}

// wideNetwork returns the error for key, which is a wider network than the keys of the policy p may
// be.
func wideNetwork(p *policy.Policy, key []byte) resp.Error {
	return resp.Error("NOADDRESS network '" + string(command.Echo(key, command.MaxEcho)) + "' is too wide for policy '" + p.Name +
		"', which has KEY " + p.Main.Key.String())
}
