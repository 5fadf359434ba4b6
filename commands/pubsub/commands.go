package pubsub

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

// Group returns the command group of SUBSCRIBE, PUBLISH and related commands, including PUBSUB.
func Group() command.Group {
	return command.Group{
		Commands: commands(),
		Server: func(s *command.Server, slot command.Slot) (any, command.Hooks) {
			h := &hub{server: s, slot: slot}
			return h, command.Hooks{
				AfterCommand: h.publishHeld, Reset: h.reset, Closed: h.closed, Describe: h.describe,
				Memory: h.memory.Load, RulesChanged: h.rulesChanged, Post: h.postOwn,
			}
		},
		Worker:  func(*command.Worker, command.Slot) any { return new(posting) },
		Figures: figures(),
	}
}

func commands() []*command.Command {
	const flags = command.FlagPubSub | command.FlagLoading | command.FlagStale
	const listens = command.FlagNoScript | flags | command.FlagConnection | command.FlagSubscriber
	always := func(*command.Call, *command.Command, [][]byte) bool { return true } // the commands affect other clients
	all, one := command.ChannelSpec{First: 1, Last: -1}, command.ChannelSpec{First: 1, Last: 1}
	const (
		each   = "for each, a message with the number of subscriptions"
		linear = "O(N)"
	)
	return command.Entries(command.Defaults{Group: "pubsub", Since: "1.0.0", Complexity: linear}, []*command.Command{
		{
			Name: "subscribe", Arity: -2, Flags: listens, Keys: command.KeySpec{Channels: all},
			Summary: "Listens for messages published to channels.", Syntax: "channel [channel ...]", Reply: each,
			Run: subscribe(toChannel), WordWork: command.SubscriptionWork, Work: beginsWork,
		},
		{
			Name: "unsubscribe", Arity: -1, Flags: listens,
			Summary: "Stops listening to channels, or to all of them.", Syntax: "[channel [channel ...]]", Reply: each,
			Run: unsubscribe(toChannel), WordWork: command.SubscriptionWork, Work: leaveAllWork(toChannel),
		},
		{
			Name: "psubscribe", Arity: -2, Flags: listens,
			Keys:    command.KeySpec{Channels: command.ChannelSpec{First: 1, Last: -1, Patterns: true}},
			Summary: "Listens for messages published to channels that match patterns.", Syntax: "pattern [pattern ...]", Reply: each,
			Run: subscribe(toPattern), WordWork: command.SubscriptionWork, Work: beginsWork,
		},
		{
			Name: "punsubscribe", Arity: -1, Flags: listens,
			Summary: "Stops listening to patterns, or to all of them.", Syntax: "[pattern [pattern ...]]", Reply: each,
			Run: unsubscribe(toPattern), WordWork: command.SubscriptionWork, Work: leaveAllWork(toPattern),
		},
		{
			Name: "ssubscribe", Arity: -2, Flags: listens, Keys: command.KeySpec{Channels: all},
			Summary: "Listens for messages published to shard channels.", Syntax: "shardchannel [shardchannel ...]", Reply: each,
			Run: subscribe(toShard), WordWork: command.SubscriptionWork, Work: beginsWork,
		},
		{
			Name: "sunsubscribe", Arity: -1, Flags: listens,
			Summary: "Stops listening to shard channels, or to all of them.", Syntax: "[shardchannel [shardchannel ...]]", Reply: each,
			Run: unsubscribe(toShard), WordWork: command.SubscriptionWork, Work: leaveAllWork(toShard),
		},
		{
			Name: "publish", Arity: 3, Flags: flags | command.FlagFast | command.FlagMayReplicate, Keys: command.KeySpec{Channels: one},
			Summary: "Posts a message to a channel.", Syntax: "channel message", Complexity: "O(N+M)",
			Reply: "the number of clients that get it", Run: publish(toChannel), Writes: always,
		},
		{
			Name: "spublish", Arity: 3, Flags: flags | command.FlagFast | command.FlagMayReplicate, Keys: command.KeySpec{Channels: one},
			Summary: "Posts a message to a shard channel.", Syntax: "shardchannel message", Reply: "the number of clients that get it",
			Run: publish(toShard), Writes: always,
		},
		pubsubCommand(),
	})
}

// beginsWork is the Work function of commands that begin subscriptions. It returns 0, because the
// work of their arguments is counted elsewhere. It exists so that the arguments of these commands
// are counted in the parameter begun of later commands in the transaction.
func beginsWork(*command.Call, *command.Command, [][]byte, int) int { return 0 }

// leaveAllWork returns the Work function of the command that ends subscriptions of kind. Without an
// argument the command ends all of them, so its work depends on their number. begun is the number
// of arguments of earlier commands in the queue, each of which may begin a subscription.
func leaveAllWork(kind topicKind) func(c *command.Call, cmd *command.Command, args [][]byte, begun int) int {
	return func(c *command.Call, cmd *command.Command, args [][]byte, begun int) int {
		if len(args) > 1 {
			return 0 // the work is counted for the arguments
		}
		h := cmd.Slot().OfServer(c.Server).(*hub)
		return (h.subscribed(c.Client, kind) + begun) * command.SubscriptionWork
	}
}

// subscribeWords and unsubscribeWords are the first words of the replies, by kind.
var (
	subscribeWords   = [topicKinds]string{"subscribe", "psubscribe", "ssubscribe"}
	unsubscribeWords = [topicKinds]string{"unsubscribe", "punsubscribe", "sunsubscribe"}
)

// subscribe returns the Run function of SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE, depending on kind.
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

// maySubscribe returns the error if the client may not begin all subscriptions that the arguments
// of c name, because their names are too long, or the client would have too many; "" if it may.
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

// unsubscribe returns the Run function of UNSUBSCRIBE, PUNSUBSCRIBE or SUNSUBSCRIBE, depending on
// kind. Without names the command ends all subscriptions of kind.
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
				c.Server.Host.Messages.TakeMessages(c) // messages that have arrived are sent before the reply
			}
			confirm(c, h, unsubscribeWords[kind], kind, name)
		}, nil)
	}
}

// confirm writes the reply for one subscription that has begun or ended: word, name, and the number
// of subscriptions that the client has. For toShard this is the number of shard subscriptions, and
// otherwise that of channels and patterns together. name is nil if the client had no subscription
// to end. As in Redis the reply is sent even if the client has turned replies off.
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
		c.Server.Host.Messages.Push(c.Client, own.Buf)
	}
}
