package pubsub

import (
	"bytes"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

func pubsubCommand() *command.Command {
	return &command.Command{
		Name: "pubsub", Arity: -2, Group: "pubsub",
		Summary: "A container for publish and subscribe commands.", Since: "1.0.0",
		Sub: command.Entries(command.Defaults{Group: "pubsub", Since: "1.0.0", Complexity: "O(N)"}, []*command.Command{
			{
				Name: "pubsub|channels", Arity: -2, Flags: command.FlagPubSub | command.FlagLoading | command.FlagStale,
				Summary: "Returns the channels that have subscribers.", Syntax: "[pattern]", Reply: "an array of names",
				Run: pubsubChannels(toChannel),
			},
			{
				Name: "pubsub|numpat", Arity: 2, Flags: command.FlagPubSub | command.FlagLoading | command.FlagStale,
				Summary: "Returns how many patterns have subscribers.", Complexity: "O(1)", Reply: "an integer", Run: pubsubNumPat,
			},
			{
				Name: "pubsub|numsub", Arity: -2, Flags: command.FlagPubSub | command.FlagLoading | command.FlagStale,
				Summary: "Returns how many subscribers channels have.", Syntax: "[channel [channel ...]]",
				Reply: "an array of names and integers", Run: pubsubNumSub(toChannel),
			},
			{
				Name: "pubsub|shardchannels", Arity: -2, Flags: command.FlagPubSub | command.FlagLoading | command.FlagStale,
				Summary: "Returns the shard channels that have subscribers.", Syntax: "[pattern]", Reply: "an array of names",
				Run: pubsubChannels(toShard),
			},
			{
				Name: "pubsub|shardnumsub", Arity: -2, Flags: command.FlagPubSub | command.FlagLoading | command.FlagStale,
				Summary: "Returns how many subscribers shard channels have.", Syntax: "[shardchannel [shardchannel ...]]",
				Reply: "an array of names and integers", Run: pubsubNumSub(toShard),
			},
		}),
	}
}

// channelsInline is the number of channels up to which an event loop itself runs PUBSUB CHANNELS.
// Each channel counts once more for every 16 bytes of the pattern.
const channelsInline = 1000

// pubsubChannels returns the Run function of PUBSUB CHANNELS or PUBSUB SHARDCHANNELS, depending on
// kind.
func pubsubChannels(kind topicKind) func(*command.Call) {
	return func(c *command.Call) {
		var pattern []byte
		switch {
		case len(c.Args) > 3:
			c.Fail(command.SubcommandSyntax(c))
			return
		case len(c.Args) == 3 && len(c.Args[2]) > glob.MaxPattern:
			c.Fail(command.ErrPatternTooLong)
			return
		case len(c.Args) == 3:
			pattern = bytes.Clone(c.Args[2])
		}
		sp := &hubOf(c).spaces[kind]
		list := func(_ env.Store, w *resp.Writer) { sp.write(w, pattern) }
		if sp.len()*(1+len(pattern)/16) > channelsInline {
			c.Offload(list)
			return
		}
		list(c.Store, c.W)
	}
}

// write replies with the names of the topics that match pattern and have subscribers; a nil pattern
// matches all. If the reply would be longer than [command.MaxReply], it is an error instead.
func (sp *space) write(w *resp.Writer, pattern []byte) {
	var names [][]byte
	size := 0
	for _, t := range sp.list() {
		if pattern != nil && !glob.Match(pattern, t.name) || t.count() == 0 {
			continue
		}
		names, size = append(names, t.name), size+len(t.name)+16
		if size > command.MaxReply {
			w.Error("ERR the reply is too long, use a narrower pattern")
			return
		}
	}
	w.Array(len(names))
	for _, name := range names {
		w.Bulk(name)
	}
}

// pubsubNumSub returns the Run function of PUBSUB NUMSUB or PUBSUB SHARDNUMSUB, depending on kind.
func pubsubNumSub(kind topicKind) func(*command.Call) {
	return func(c *command.Call) {
		c.W.Array(2 * (len(c.Args) - 2))
		for _, name := range c.Args[2:] {
			n := 0
			if t := hubOf(c).spaces[kind].get(name); t != nil {
				n = t.count()
			}
			c.W.Bulk(name)
			c.W.Int(int64(n))
		}
	}
}

func pubsubNumPat(c *command.Call) { c.W.Int(int64(hubOf(c).spaces[toPattern].len())) }
