package pubsub

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

// Group returns SUBSCRIBE, PUBLISH and related commands.
func Group() command.Group {
	return command.Group{
		Commands: commands(),
		Server: func(s *command.Server, slot command.Slot) (any, command.Hooks) {
			h := &hub{server: s, slot: slot}
			return h, command.Hooks{
				AfterCommand: h.publishHeld, Reset: h.reset, Closed: h.closed, Describe: h.describe,
				Memory: h.memory.Load, RulesChanged: h.rulesChanged,
			}
		},
		Worker:  func(*command.Worker, command.Slot) any { return new(posting) },
		Figures: figures(),
	}
}

func commands() []*command.Command {
	const flags = command.FlagPubSub | command.FlagLoading | command.FlagStale
	always := func(*command.Call, *command.Command, [][]byte) bool { return true }
	writes := map[string]func(*command.Call, *command.Command, [][]byte) bool{"publish": always, "spublish": always} // they affect other clients
	entry := func(name string, arity int, f command.Flag, syntax, summary, complexity, reply string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: name, Arity: arity, Flags: f | flags, Group: "pubsub", Summary: summary, Syntax: syntax,
			Since: "1.0.0", Complexity: complexity, Reply: reply, Run: run,
			Writes: writes[name],
		}
	}
	const (
		each   = "for each, a message with the number of subscriptions"
		linear = "O(N)"
	)
	all := []*command.Command{
		entry("subscribe", -2, command.FlagNoScript, "channel [channel ...]", "Listens for messages published to channels.", linear, each, subscribe(toChannel)),
		entry("unsubscribe", -1, command.FlagNoScript, "[channel [channel ...]]", "Stops listening to channels, or to all of them.", linear, each, unsubscribe(toChannel)),
		entry("psubscribe", -2, command.FlagNoScript, "pattern [pattern ...]", "Listens for messages published to channels that match patterns.", linear, each, subscribe(toPattern)),
		entry("punsubscribe", -1, command.FlagNoScript, "[pattern [pattern ...]]", "Stops listening to patterns, or to all of them.", linear, each, unsubscribe(toPattern)),
		entry("ssubscribe", -2, command.FlagNoScript, "shardchannel [shardchannel ...]", "Listens for messages published to shard channels.", linear, each, subscribe(toShard)),
		entry("sunsubscribe", -1, command.FlagNoScript, "[shardchannel [shardchannel ...]]", "Stops listening to shard channels, or to all of them.", linear, each, unsubscribe(toShard)),
		entry("publish", 3, command.FlagFast, "channel message", "Posts a message to a channel.", "O(N+M)", "the number of clients that get it", publish(toChannel)),
		entry("spublish", 3, command.FlagFast, "shardchannel message", "Posts a message to a shard channel.", linear, "the number of clients that get it", publish(toShard)),
		pubsubCommand(),
	}
	channels := map[string]command.ChannelSpec{
		"subscribe": {First: 1, Last: -1}, "psubscribe": {First: 1, Last: -1, Patterns: true}, "ssubscribe": {First: 1, Last: -1},
		"publish": {First: 1, Last: 1}, "spublish": {First: 1, Last: 1},
	}
	for _, c := range all {
		c.Keys.Channels = channels[c.Name]
		if c.Subscribes() {
			c.Flags |= command.FlagConnection
			c.WordWork, c.Work = command.SubscriptionWork, leaveAllWork
		}
	}
	return all
}

// leaveAllWork returns the work of a queued command that ends all subscriptions of a kind,
// including the begun ones that commands before it in the queue start.
func leaveAllWork(c *command.Call, cmd *command.Command, args [][]byte, begun int) int {
	if len(args) > 1 {
		return 0 // its work is that of its words
	}
	h := cmd.Slot().OfServer(c.Server).(*hub)
	for kind, word := range unsubscribeWords {
		if cmd.Name == word {
			return (h.subscribed(c.Client, topicKind(kind)) + begun) * command.SubscriptionWork
		}
	}
	return 0
}

// subscribeWords and unsubscribeWords are the first words of the replies.
var (
	subscribeWords   = [topicKinds]string{"subscribe", "psubscribe", "ssubscribe"}
	unsubscribeWords = [topicKinds]string{"unsubscribe", "punsubscribe", "sunsubscribe"}
)

// subscribe is the handler of SUBSCRIBE, PSUBSCRIBE and SSUBSCRIBE.
func subscribe(kind topicKind) func(*command.Call) {
	return func(c *command.Call) {
		if err := maySubscribe(c, kind); err != "" {
			c.Fail(err)
			return
		}
		h := hubOf(c)
		c.InSlices(c.Args[1:], func(c *command.Call, name []byte) {
			h.subscribe(c.Client, kind, name)
			closeIfForbidden(c.Client, kind, name)
			confirm(c, h, subscribeWords[kind], kind, name)
		}, nil)
	}
}

// maySubscribe checks all arguments before any subscription begins.
func maySubscribe(c *command.Call, kind topicKind) resp.Error {
	cost, inner := 0, 0
	for _, name := range c.Args[1:] {
		switch {
		case kind == toPattern && len(name) > glob.MaxPattern:
			return command.ErrPatternTooLong
		case len(name) > maxChannel:
			return errChannelTooLong
		}
		cost += command.SubscriptionCost(name)
		if kind == toPattern {
			inner += glob.InnerLength(name)
		}
	}
	h := hubOf(c)
	if subs := h.of(c.Client); subs != nil {
		cost, inner = cost+int(subs.cost.Load()), inner+subs.inner
	}
	if cost > command.MaxSubscribed || inner > maxInner || kind == toPattern && h.subscribed(c.Client, toPattern)+len(c.Args)-1 > command.MaxPatterns {
		return errManySubscriptions
	}
	return ""
}

// unsubscribe is the handler of UNSUBSCRIBE, PUNSUBSCRIBE and SUNSUBSCRIBE.
func unsubscribe(kind topicKind) func(*command.Call) {
	return func(c *command.Call) {
		h, names := hubOf(c), c.Args[1:]
		if len(names) == 0 {
			names = h.names(c.Client, kind)
		}
		if len(names) == 0 {
			confirm(c, h, unsubscribeWords[kind], kind, nil)
		}
		c.InSlices(names, func(c *command.Call, name []byte) {
			h.unsubscribe(c.Client, kind, name)
			if c.Client.Reply == command.ReplyOn && !c.Client.Exclusive {
				c.Server.Host.TakeMessages(c) // messages that arrived before the end of the subscription come before its reply
			}
			confirm(c, h, unsubscribeWords[kind], kind, name)
		}, nil)
	}
}

// confirm replies with the name of a subscription that has begun or ended, and with the number of
// subscriptions. The name is nil if the client unsubscribed from everything without having any
// subscription. As in Redis the message is sent even if the client has turned replies off.
func confirm(c *command.Call, h *hub, word string, kind topicKind, name []byte) {
	own := resp.Writer{Proto: c.Client.Proto}
	w := c.W
	if c.Client.Reply != command.ReplyOn {
		w = &own
	}
	count := h.subscribed(c.Client, kind)
	if kind != toShard {
		count = h.subscribed(c.Client, toChannel) + h.subscribed(c.Client, toPattern)
	}
	w.Push(3)
	w.BulkString(word)
	if name == nil {
		w.Null()
	} else {
		w.Bulk(name)
	}
	w.Int(int64(count))
	if len(own.Buf) > 0 {
		c.Server.Host.Push(c.Client, own.Buf)
	}
}
