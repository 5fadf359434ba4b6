package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// slots is the number of hash slots of a cluster.
const slots = 16384

// topology maps slots to masters. For each slot, the field slots has the index of the master in
// masters, or -1 if no master has the slot. A standalone node has all slots.
type topology struct {
	cluster bool
	masters []string
	slots   []int16 // the index of the node of each slot; nil for a standalone node
}

var errNoCluster = errors.New("several hosts are named, but they are no cluster")

// askNode asks the node at addr whether it belongs to a cluster, and if so, for the topology.
// several says that the URL names several hosts, so that a standalone node is an error.
func askNode(ctx context.Context, c *redis.Client, addr string, several bool) (*topology, error) {
	info, err := c.Info(ctx, "cluster").Result()
	switch {
	case err != nil && !isReply(err):
		return nil, err
	case err == nil && !strings.Contains(info, "cluster_enabled:1"):
		if several {
			return nil, errNoCluster
		}
		return &topology{masters: []string{addr}}, nil
	}
	ranges, err2 := c.ClusterSlots(ctx).Result() //nolint:staticcheck // some engines do not know CLUSTER SHARDS
	switch {
	case err2 == nil:
		return clusterOf(ranges, addr)
	case isReply(err2) && strings.Contains(err2.Error(), "cluster support disabled") && !several:
		return &topology{masters: []string{addr}}, nil
	}
	return nil, errors.Join(err, err2)
}

// clusterOf returns the topology that ranges describe. ranges is the reply to CLUSTER SLOTS of the
// node at asked. It ignores invalid ranges. A cluster without slots, or with too many masters, is
// an error.
func clusterOf(ranges []redis.ClusterSlot, asked string) (*topology, error) {
	t := &topology{cluster: true, slots: make([]int16, slots)}
	for i := range t.slots {
		t.slots[i] = -1
	}
	slices.SortFunc(ranges, func(a, b redis.ClusterSlot) int { return a.Start - b.Start })
	for _, r := range ranges {
		if len(r.Nodes) == 0 || r.Start < 0 || r.End >= slots || r.Start > r.End {
			continue
		}
		at := slices.Index(t.masters, reachable(r.Nodes[0].Addr, asked))
		if at < 0 {
			if at = len(t.masters); at > mostNodes {
				return nil, fmt.Errorf("the cluster has more than %d masters", mostNodes)
			}
			t.masters = append(t.masters, reachable(r.Nodes[0].Addr, asked))
		}
		for s := r.Start; s <= r.End; s++ {
			t.slots[s] = int16(at)
		}
	}
	if len(t.masters) == 0 {
		return nil, errors.New("the cluster has no slots yet")
	}
	return t, nil
}

// mostNodes is the approximate maximum number of nodes that an engine knows.
const mostNodes = 1 << 11

// reachable returns the address at which this server reaches the node that the node at asked calls
// addr. If addr has no host, or has a loopback address and asked does not, its host is replaced by
// the host of asked.
func reachable(addr, asked string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	other, _, err := net.SplitHostPort(asked)
	if err != nil {
		return addr
	}
	if host == "" || host == "?" || loopback(host) && !loopback(other) {
		return net.JoinHostPort(other, port)
	}
	return addr
}

// loopback reports whether host is a name or an address of the loopback interface.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// askSentinel asks the Sentinel at asked for the address of the master called name. It returns a
// topology with that master as a standalone node. It is an error if the Sentinel does not know the
// master.
func askSentinel(ctx context.Context, c *redis.SentinelClient, name, asked string) (*topology, error) {
	at, err := c.GetMasterAddrByName(ctx, name).Result()
	if errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("the Sentinel at %s knows no master %q", asked, name)
	}
	if err != nil {
		return nil, err
	}
	if len(at) != 2 {
		return nil, fmt.Errorf("the Sentinel at %s replied no address", asked)
	}
	return &topology{masters: []string{reachable(net.JoinHostPort(at[0], at[1]), asked)}}, nil
}

// redirection parses an error reply such as "MOVED 3999 127.0.0.1:6381" or "ASK 3999
// 127.0.0.1:6381". It returns the slot and the address of the node that has the slot. ok is false
// if the reply is malformed.
func redirection(text string) (slot int, addr string, ok bool) {
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return 0, "", false
	}
	slot, err := strconv.Atoi(fields[1])
	return slot, fields[2], err == nil && slot >= 0 && slot < slots && strings.Contains(fields[2], ":")
}

// slotOf returns the slot of a key in a cluster. If key contains a hash tag, the part between the
// first { and the next }, and that part is not empty, it determines the slot. Otherwise prefix
// and key together determine it.
func slotOf(prefix string, key []byte) int {
	if open := slices.Index(key, '{'); open >= 0 {
		if end := slices.Index(key[open+1:], '}'); end > 0 {
			return int(crc16(0, key[open+1:open+1+end])) % slots
		}
	}
	return int(crc16(crc16(0, prefix), key)) % slots
}

// crc16 continues the checksum crc with the bytes of b and returns the result. The checksum is
// CRC-16/XMODEM, which clusters use. It begins with 0.
func crc16[T string | []byte](crc uint16, b T) uint16 {
	for i := range len(b) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b[i]]
	}
	return crc
}

var crcTable = func() (t [256]uint16) {
	for i := range t {
		c := uint16(i) << 8
		for range 8 {
			if c&0x8000 != 0 {
				c = c<<1 ^ 0x1021
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()
