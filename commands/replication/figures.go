package replication

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/replication/protocol"
)

// figures returns the figures that INFO stats shows of the server's replication node.
func figures() []figure.Figure {
	of := func(read func(n *protocol.Counts) int64) func(*figure.View, figure.Emit) {
		return figure.One(func(v *figure.View) int64 {
			n := figure.Of[*command.Server](v).Node().Counts()
			return read(&n)
		})
	}
	return []figure.Figure{
		figure.Shown("Stats", "sync_full", of(func(n *protocol.Counts) int64 { return n.SyncFull })),
		figure.Shown("Stats", "sync_partial_ok", of(func(n *protocol.Counts) int64 { return n.SyncPartialOK })),
		figure.Shown("Stats", "sync_partial_err", of(func(n *protocol.Counts) int64 { return n.SyncPartialErr })),
		figure.Shown("Stats", "total_net_repl_input_bytes", of(func(n *protocol.Counts) int64 { return n.BytesIn })),
		figure.Shown("Stats", "total_net_repl_output_bytes", of(func(n *protocol.Counts) int64 { return n.BytesOut })),
	}
}
