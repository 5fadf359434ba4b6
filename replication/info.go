package replication

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/replication/protocol"
)

// placeOf returns the host and port at which the replica r listens: the address that it has
// announced, or else the address of its connection.
func placeOf(r ReplicaInfo) place {
	host := r.IP
	if host == "" {
		if host, _, _ = net.SplitHostPort(r.Addr); host == "" {
			host = r.Addr
		}
	}
	return place{host, strconv.Itoa(r.Port)}
}

// Role implements env.Node: it returns what ROLE replies.
func (n *Node) Role() protocol.Role {
	role := protocol.Role{Offset: int64(n.o.Source.Offset())}
	for _, r := range n.o.Source.Replicas() {
		at := placeOf(r)
		role.Replicas = append(role.Replicas, protocol.Replica{Host: at.host, Port: at.port, Offset: int64(r.Acked)})
	}
	id, offset, _ := n.redisPosition()
	n.mu.Lock()
	defer n.mu.Unlock()
	if role.Replica = n.replica; n.replica {
		if id != "" {
			role.Offset = offset
		}
		role.Host, role.State = n.primary.host, n.phase
		role.Port, _ = strconv.Atoi(n.primary.port) // there is no error, because the command has checked the port
		if !n.f.whole.Load() {
			role.Offset = -1
		}
	}
	return role
}

// Info implements env.Node: it returns the fields of INFO replication. The fields of a replica
// that Redis does not have are at the end.
func (n *Node) Info() []protocol.Field {
	n.mu.Lock()
	st, state := n.roleState, n.handover.state
	n.mu.Unlock()
	rest := n.primaryInfo(state).Fields()
	if s := n.o.Settings(); s.NeedsReplicas() {
		good := number("min_slaves_good_slaves", int64(n.o.Source.Good(s.MinReplicasMaxLag)))
		rest = slices.Insert(rest, 2, good) // the position after role and connected_slaves
	}
	rest = append(rest, protocol.Field{Name: "cell_data_set", Value: n.o.Files.DataSet()})
	if !st.replica {
		return rest
	}
	fields := append([]protocol.Field{{Name: "role", Value: "slave"}}, n.replicaInfo(&st)...)
	fields = append(fields, rest[1:]...) // role is added already, so it is left out
	lag := int64(-1)
	if behind, known := n.Lag(); known {
		lag = behind.Milliseconds()
	}
	return append(fields, number("cell_repl_lag_ms", lag), protocol.Field{Name: "cell_repl_error", Value: st.fault})
}

// Lag returns behind, the time by which the state of this replica is older than the state of its
// primary. known is false on a primary, and until the primary has sent its clock.
func (n *Node) Lag() (behind time.Duration, known bool) {
	n.mu.Lock()
	replica := n.replica
	n.mu.Unlock()
	at := n.f.horizon.Load()
	if !replica || at == 0 {
		return 0, false
	}
	return max(0, n.o.Clock.Now().Sub(limit.Instant(at))), true
}

// primaryInfo returns the fields that nodes of both roles show: their history, backlog and
// replicas. state is the state of a failover.
func (n *Node) primaryInfo(state handoverState) protocol.PrimaryInfo {
	h := n.o.Source.History()
	active, first, length := n.o.Source.BacklogState()
	p := protocol.PrimaryInfo{
		ReplID: h.ID, ReplID2: h.ID2, Offset: int64(n.o.Source.Offset()), SecondOffset: h.Offset2,
		FailoverState: state.String(), BacklogActive: active, BacklogSize: n.o.Settings().BacklogSize,
		Backlog: int64(length),
	}
	if active {
		p.BacklogFrom = int64(first) + 1
	}
	for i, r := range n.o.Source.Replicas() {
		at, state := placeOf(r), "send_bulk"
		if r.Online {
			state = "online"
		}
		p.Replicas = append(p.Replicas, protocol.Field{
			Name: "slave" + strconv.Itoa(i),
			Value: fmt.Sprintf("ip=%s,port=%s,state=%s,offset=%d,lag=%d",
				at.host, at.port, state, r.Acked, max(0, r.Heard)/time.Second),
		})
	}
	return p
}

// replicaInfo returns the fields of INFO that a replica shows about its link to the primary and
// about itself. st is the role of the node.
func (n *Node) replicaInfo(st *roleState) []protocol.Field {
	s, now := n.o.Settings(), n.o.Stopwatch()
	status, heard, offset, priority := "down", int64(-1), int64(n.o.Source.Offset()), int64(s.Priority)
	if st.phase == phaseConnected {
		status = "up"
		if st.link != nil {
			heard = int64(st.link.silence() / time.Second)
		}
	}
	if !n.IsWhole() {
		priority = 0 // priority 0, so that Sentinel does not promote an incomplete state
	}
	if id, at, _ := n.redisPosition(); id != "" {
		offset = at // the offset in the stream of the Redis that this server follows
	}
	syncing := st.phase == phaseSync
	fields := []protocol.Field{
		{Name: "master_host", Value: st.primary.host},
		{Name: "master_port", Value: st.primary.port},
		{Name: "master_link_status", Value: status},
		number("master_last_io_seconds_ago", heard),
		number("master_sync_in_progress", bit(syncing)),
		number("slave_read_repl_offset", offset), number("slave_repl_offset", offset),
	}
	if syncing {
		idle := int64(0)
		if st.link != nil {
			idle = int64(st.link.silence() / time.Second)
		}
		// The remaining size is unknown, as in a diskless synchronization of Redis.
		read := n.f.bytes.Load() - st.bytesBefore
		fields = append(fields, number("master_sync_total_bytes", -1), number("master_sync_read_bytes", read),
			number("master_sync_left_bytes", -1), protocol.Field{Name: "master_sync_perc", Value: "-0.00"},
			number("master_sync_last_io_seconds_ago", idle))
	}
	if status == "down" {
		since := int64(-1)
		if st.wasUp {
			since = int64((now - st.downSince) / time.Second)
		}
		fields = append(fields, number("master_link_down_since_seconds", since))
	}
	return append(fields, number("slave_priority", priority), number("slave_read_only", 1),
		number("replica_announced", bit(s.Announced)))
}

func number(name string, n int64) protocol.Field {
	return protocol.Field{Name: name, Value: strconv.FormatInt(n, 10)}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
