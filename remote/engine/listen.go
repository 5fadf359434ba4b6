package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// listenBeat is the interval at which a subscription is made again on its connection. The node has to answer each
	// time. So the client notices a dead connection after two intervals, and a slot that has moved after one.
	listenBeat = 2 * time.Second
	// listenGap and listenGapMost are the shortest and the longest time between two attempts to subscribe.
	listenGap     = 100 * time.Millisecond
	listenGapMost = 5 * time.Second
)

// Listen subscribes to channel, a name without the prefix, at the node that has its slot, until ctx ends or the engine
// is closed. The channel is a sharded one if the node has those. Listen calls heard with nil for each message, and when
// a subscription begins, as messages before that may be lost. It calls heard with an [*Error] when a subscription ends,
// and for each attempt that fails. heard must not block. Listen blocks.
func (e *Engine) Listen(ctx context.Context, channel string, heard func(err error)) {
	gap := listenGap
	for {
		began := false
		err := e.listen(ctx, channel, func() { began = true; heard(nil) })
		if ctx.Err() != nil || e.closing.Load() {
			return
		}
		heard(err)
		if began {
			gap = listenGap
		}
		if !e.pause(gap, ctx.Done()) || ctx.Err() != nil {
			return
		}
		gap = min(2*gap, listenGapMost)
	}
}

// listen does what Listen does, until the subscription ends, and returns the reason.
func (e *Engine) listen(ctx context.Context, channel string, heard func()) (why *Error) {
	slot := e.Slot([]byte(channel))
	n, why := e.nodeOf(slot)
	if why != nil {
		return why
	}
	if why = n.breaker.closedTo(); why != nil {
		return why
	}
	s := subscription{PubSub: n.control.Subscribe(ctx), channel: e.o.Prefix + channel, sharded: true}
	defer func() { _ = s.Close() }()
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	for next := e.o.Elapsed(); ; {
		left := next - e.o.Elapsed()
		if left <= 0 {
			switch at, why := e.nodeOf(slot); {
			case why != nil:
				return why
			case at != n:
				return elsewhere
			case s.unanswered:
				return silent
			}
			n.used.Store(int64(e.o.Elapsed()))
			if err := s.subscribe(ctx); err != nil {
				return failed(err, false)
			}
			left, next = listenBeat, e.o.Elapsed()+listenBeat
		}
		switch news, err := s.receive(ctx, left); {
		case err != nil:
			e.trouble()
			if errors.As(err, &why) {
				return why
			}
			return errorOf(err)
		case news:
			heard()
		}
	}
}

var (
	elsewhere = &Error{Reason: "MOVED", Text: "the slot of the channel is at another node", NotDone: true}
	silent    = &Error{Reason: Timeout, Text: "the node of the channel is silent", NotDone: true}
)

// subscription is a connection that is subscribed to a channel, or will be.
type subscription struct {
	*redis.PubSub
	channel    string // name of the channel, including the prefix
	sharded    bool   // whether the node has sharded channels, as far as is known
	began      bool   // whether the node has confirmed the subscription
	unanswered bool   // whether the node has not answered the latest subscribe
}

// subscribe sends the command that subscribes. It does not change an existing subscription.
func (s *subscription) subscribe(ctx context.Context) error {
	s.unanswered = true
	if s.sharded {
		return s.SSubscribe(ctx, s.channel)
	}
	return s.Subscribe(ctx, s.channel)
}

// receive waits for a message of the node, for d at most. news reports that the subscription has begun, or that there is
// a message of the channel. If the client library panics, which it does on malformed messages, receive returns an error.
func (s *subscription) receive(ctx context.Context, d time.Duration) (news bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			news, err = false, fmt.Errorf("%w: %v", errReply, p)
		}
	}()
	is, err := s.ReceiveTimeout(ctx, d)
	var late net.Error
	switch {
	case errors.As(err, &late) && late.Timeout():
		return false, nil
	case s.sharded && !s.began && isReply(err) && strings.Contains(err.Error(), "unknown command"): // the node is older than Redis 7
		s.sharded = false
		return false, s.subscribe(ctx)
	case err != nil:
		return false, err
	}
	if _, news = is.(*redis.Message); news {
		return true, nil
	}
	sub, ok := is.(*redis.Subscription)
	switch {
	case !ok:
		return false, errReply
	case sub.Kind != "subscribe" && sub.Kind != "ssubscribe": // the node has ended the subscription, because the slot has moved
		return false, elsewhere
	}
	news, s.began, s.unanswered = !s.began, true, false
	return news, nil
}
