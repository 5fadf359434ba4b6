package chaos_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
	"github.com/cellserver/cellserver/internal/storetest"
)

// stacks are client stacks that call one primary.
type stacks struct {
	all []stack
	// away has, by the name of the stack, how long after each failover it was answered.
	away map[string][]time.Duration
}

// startStacks starts all stacks that this machine has. A missing one is one SKIP line, and a
// failure in continuous integration.
func startStacks(t *testing.T, sentinels []string) *stacks {
	t.Helper()
	s := &stacks{all: []stack{startGoredis(t, sentinels)}, away: map[string][]time.Duration{}}
	for _, p := range stackPrograms() {
		if why := p.missing(); why != "" {
			require.False(t, programs.Required(), "%s: run `make setup`", why)
			t.Logf("SKIP: %s: run `make setup`", why)
			continue
		}
		p.start(t, sentinels)
		s.all = append(s.all, p)
	}
	s.mark()
	for _, one := range s.all {
		awaitStack(t, one)
	}
	return s
}

// mark asks all stacks to report their next answered call.
func (s *stacks) mark() {
	for _, one := range s.all {
		one.mark()
	}
}

// awaitStack returns when a stack reports an answered call that began after its last mark.
func awaitStack(t *testing.T, one stack) {
	t.Helper()
	select {
	case <-one.answered():
	case <-time.After(storetest.Patience):
		require.Fail(t, "no call of "+one.name()+" is answered")
	}
}

// awaitBack returns when each stack was answered by another primary than the one that went at a
// time, and notes how long it took. mark was called when that primary could answer no more.
func (s *stacks) awaitBack(t *testing.T, gone time.Time) {
	t.Helper()
	type back struct {
		name string
		took time.Duration
	}
	told := make(chan back, len(s.all))
	ended := make(chan struct{})
	defer close(ended)
	for _, one := range s.all {
		go func() {
			select {
			case <-one.answered():
				told <- back{one.name(), time.Since(gone)}
			case <-ended:
			}
		}()
	}
	patience := time.After(storetest.Patience)
	for range s.all {
		select {
		case b := <-told:
			s.away[b.name] = append(s.away[b.name], b.took.Round(time.Millisecond))
		case <-patience:
			require.Fail(t, "a stack is not answered after a failover", "answered so far: %v", s.away)
		}
	}
}

// awaitWork returns when each stack has counted so much more in the primary: what is done then
// meets a load.
func (s *stacks) awaitWork(t *testing.T, primary *storetest.Node, more int64) {
	t.Helper()
	for _, one := range s.all {
		before, err := counted(t, primary, one.key())
		require.NoError(t, err)
		storetest.Await(t, one.name()+" counts", func() error {
			now, err := counted(t, primary, one.key())
			if err == nil && now < before+more {
				err = fmt.Errorf("by %d", now-before)
			}
			return err
		})
	}
}

// counted is the value of a counter.
func counted(t *testing.T, n *storetest.Node, key string) (int64, error) {
	t.Helper()
	value, err := n.Client.Get(t.Context(), key).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return value, err
}

// check ends all stacks and compares what they were told with what the last primary has.
func (s *stacks) check(t *testing.T, last *storetest.Node) {
	t.Helper()
	var hot []hotCall
	reports, stored := make([]stackReport, len(s.all)), make([]int64, len(s.all))
	for i, one := range s.all {
		reports[i] = one.end(t)
		for _, c := range reports[i].Hot {
			hot = append(hot, hotCall{c[0], c[1]})
		}
	}
	for i, one := range s.all {
		r := reports[i]
		value, err := counted(t, last, one.key())
		require.NoError(t, err)
		stored[i] = value
		t.Logf("%-8s %6d acknowledged, %4d unknown, %5d refused, %6d stored; longest silence %4.0f ms; answered after %v; failed: %v",
			one.name(), r.Acked, r.Unknown, r.Refused, value, r.Longest, s.away[one.name()], r.Errors)
	}
	for i, one := range s.all {
		r, value := reports[i], stored[i]
		require.Positive(t, r.Acked, one.name())
		require.NotEmpty(t, r.Hot, "%s is admitted", one.name())
		require.GreaterOrEqual(t, value, r.Acked, "%s: acknowledged calls are lost", one.name())
		require.LessOrEqual(t, value, r.Acked+r.Unknown, "%s: calls ran twice, or ran although they were refused", one.name())
	}
	excess := worstExcess(hot, hotBurst, hotRate)
	t.Logf("%d calls of the hot limit were admitted; excess %.1f", len(hot), excess)
	require.LessOrEqual(t, excess, 0.0)
}

// TestClientStacksFollowFailovers kills primaries, and hands over once, under the load of client
// libraries of four languages that find the primary by their own support for Sentinel. Each is
// answered again after each failover; with repl-ack-replies 1 nothing acknowledged is lost, and
// nothing runs twice. The sentinels are those of both makes.
func TestClientStacksFollowFailovers(t *testing.T) {
	skipShort(t)
	e := storetest.Cellserver(t, storetest.Engine{})
	storetest.Each(t, func(t *testing.T, watcher storetest.Engine) {
		watch := e.Watched(watcher).Sentinels(t, 2, storetest.Options{NodeTimeout: standbyDown, Args: []string{"--repl-ack-replies", "1"}})
		load := startStacks(t, watch.Addrs())
		primary := watch.Master
		kills := scaled(2, 50)
		for i := range kills {
			load.awaitWork(t, primary, 100)
			primary = load.kill(t, watch, primary)
			if i == kills/2-1 {
				load.awaitWork(t, primary, 100)
				primary = load.handOver(t, watch, primary)
			}
		}
		load.awaitWork(t, primary, 100)
		load.check(t, primary)
	})
}

// kill kills the primary, waits for the next, and has the killed node follow that.
func (s *stacks) kill(t *testing.T, watch *storetest.Sentinels, primary *storetest.Node) (next *storetest.Node) {
	t.Helper()
	primary.Kill()
	killed := time.Now()
	s.mark()
	s.awaitBack(t, killed)
	next = watch.AwaitFailover(primary)
	primary.Follow(next)
	primary.AwaitReady()
	awaitFollowers(t, watch, next)
	return next
}

// handOver has the primary hand over to a replica as an operator does where sentinels watch: the
// replica gets the best priority, so that they choose the same, and they are told when it is done.
// By themselves they notice after a while, and tell clients the former primary until then.
func (s *stacks) handOver(t *testing.T, watch *storetest.Sentinels, primary *storetest.Node) *storetest.Node {
	t.Helper()
	target := others(watch, primary)[0]
	target.Do("CONFIG", "SET", "replica-priority", "1")
	for _, sentinel := range watch.Sentinels {
		sentinel.Do("SENTINEL", "DEBUG", "INFO-PERIOD", "500") // or they know after 10 s
		storetest.Await(t, "the sentinels know the priority", func() error { return prefers(t, sentinel, target) })
	}
	host, port, err := net.SplitHostPort(target.Addr)
	require.NoError(t, err)
	began := time.Now()
	primary.Do("FAILOVER", "TO", host, port, "TIMEOUT", "60000")
	storetest.Await(t, "the replica takes over", func() error {
		if role := target.Role(); role != "master" {
			return fmt.Errorf("it is a %s; the primary says %v", role, primary.Info("replication"))
		}
		return nil
	})
	t.Logf("handed over within %s", time.Since(began).Round(time.Millisecond))
	s.mark()
	storetest.Await(t, "a sentinel hears of it", func() error {
		err := watch.Sentinels[0].Client.Do(t.Context(), "SENTINEL", "FAILOVER", storetest.MasterName).Err()
		if err != nil && strings.Contains(err.Error(), "INPROG") {
			return nil // they have noticed
		}
		return err // none of the replicas is good: it has not asked them for a while
	})
	require.Same(t, target, watch.AwaitFailover(primary))
	// Sentinels end the connections of clients to a node that they make a replica. This one has
	// become one by itself, and Lettuce looks for the primary only when its connection ends.
	primary.Do("CLIENT", "KILL", "TYPE", "normal")
	s.awaitBack(t, began)
	target.Do("CONFIG", "SET", "replica-priority", "100")
	awaitFollowers(t, watch, target)
	return target
}

// awaitFollowers returns when all nodes but the primary copy it.
func awaitFollowers(t *testing.T, watch *storetest.Sentinels, primary *storetest.Node) {
	t.Helper()
	for _, n := range others(watch, primary) {
		storetest.Await(t, n.Addr+" follows "+primary.Addr, func() error {
			info := n.Info("replication")
			if net.JoinHostPort(info["master_host"], info["master_port"]) != primary.Addr || info["master_link_status"] != "up" {
				return fmt.Errorf("%v", info)
			}
			return nil
		})
	}
}

// prefers returns nil when a sentinel knows that the priority of a replica is 1.
func prefers(t *testing.T, sentinel, replica *storetest.Node) error {
	reply, err := sentinel.Client.Do(t.Context(), "SENTINEL", "REPLICAS", storetest.MasterName).Slice()
	if err != nil {
		return err
	}
	for _, one := range reply {
		if text := fmt.Sprint(one); strings.Contains(text, replica.Addr) && strings.Contains(text, "slave-priority 1 ") {
			return nil
		}
	}
	return fmt.Errorf("not in %v", reply)
}

// others are the nodes beside one.
func others(watch *storetest.Sentinels, one *storetest.Node) (all []*storetest.Node) {
	for _, n := range append([]*storetest.Node{watch.Master}, watch.Replicas...) {
		if n != one {
			all = append(all, n)
		}
	}
	return all
}
