package chaos_test

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
)

// front is a proxy in front of a node, where clients and other nodes find it.
type front struct {
	addr  string
	proxy *toxiproxy.Proxy
	t     testing.TB
}

// newFront starts a proxy to the address of a node, for as long as the test runs.
func newFront(t testing.TB, node string) *front {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	addr := net.JoinHostPort("127.0.0.1", freeport.Choose())
	f := &front{t: t, addr: addr, proxy: toxiproxy.NewProxy(server, addr, addr, node)}
	require.NoError(t, f.proxy.Start())
	t.Cleanup(func() {
		f.heal()
		f.proxy.Stop()
	})
	return f
}

// toxin is what a front does to the bytes of a connection.
type toxin struct {
	Type string `json:"type"`
	// Stream is downstream, what nodes say, or upstream, what clients do.
	Stream string `json:"stream"`
	// Toxicity is the share of the connections that it is done to.
	Toxicity float32 `json:"toxicity"`
	// Attributes are those of the type.
	Attributes map[string]any `json:"attributes"`
}

// The toxins.
var (
	// blackHole takes all and says nothing.
	blackHole = toxin{Type: "timeout", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"timeout": 0}}
	// deaf lets nothing reach the node.
	deaf = toxin{Type: "timeout", Stream: "upstream", Toxicity: 1, Attributes: map[string]any{"timeout": 0}}
)

// slow delays what nodes say.
func slow(ms, jitter int) toxin {
	return toxin{Type: "latency", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"latency": ms, "jitter": jitter}}
}

// reset resets that share of the new connections with the node's first words.
func reset(share float32) toxin {
	return toxin{Type: "reset_peer", Stream: "downstream", Toxicity: share, Attributes: map[string]any{"timeout": 0}}
}

// cut loses one in so many replies, and its connection.
func cut(oneIn int) toxin {
	return toxin{Type: cutType, Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"oneIn": oneIn}}
}

// hold keeps back by so long what a master tells replicas. It sees those that begin to follow
// from now on.
func hold(ms int) toxin {
	return toxin{Type: holdType, Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"latency": ms}}
}

// add begins to harm connections, those that there are too. Each kind is there once.
func (f *front) add(one toxin) {
	f.t.Helper()
	text, err := json.Marshal(one)
	require.NoError(f.t, err)
	_, err = f.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
	require.NoError(f.t, err)
}

// heal ends all harm.
func (f *front) heal() { f.proxy.Toxics.ResetToxics(f.t.Context()) }

// refuse closes all connections and takes no new ones.
func (f *front) refuse() { f.proxy.Stop() }

// accept takes connections again.
func (f *front) accept() {
	f.t.Helper()
	require.NoError(f.t, f.proxy.Start())
}

// lead closes all connections, and leads new ones to another node.
func (f *front) lead(node string) {
	f.t.Helper()
	require.NoError(f.t, f.proxy.Update(&toxiproxy.Proxy{Listen: f.addr, Upstream: node, Enabled: true}))
}
