package replication

import "github.com/cellserver/cellserver/commands/command"

// Group returns the commands of replication.
func Group() command.Group {
	return command.Group{
		Commands: command.With(command.FlagLocal, append(orders(), handshake()...)...),
		Figures:  figures(),
	}
}

// orders returns the commands of operators and clients.
func orders() []*command.Command {
	const admin = command.FlagAdmin | command.FlagNoScript | command.FlagStale | command.FlagFence | command.FlagAudit
	follow := func(name, summary string) *command.Command {
		return &command.Command{
			Name: name, Arity: 3, Flags: admin | command.FlagSyncing, Group: "server", Summary: summary, Syntax: "<host port | NO ONE>",
			Since: "1.0.0", Complexity: "O(1)", Reply: "OK: the work goes on beside", Run: follow,
			Disclosure: command.Disclosure{AuditAttrs: auditFollow},
		}
	}
	return []*command.Command{
		follow("replicaof", "Makes the server a replica of another one, or a primary."),
		follow("slaveof", "Does the same as REPLICAOF."),
		{
			Name: "failover", Arity: -1, Flags: admin, Group: "server",
			Summary: "Hands over to a replica without losing a decision.", Syntax: "[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]",
			Since: "1.0.0", Complexity: "O(1)", Reply: "OK: the handover goes on beside", Run: failover,
		},
		{
			Name: "role", Arity: 1, Flags: command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagFast,
			Categories: command.CatAdmin | command.CatDangerous, Group: "server",
			Summary: "Returns the replication role.", Since: "1.0.0", Complexity: "O(1)",
			Reply: "master, the offset and the replicas; or slave, the primary, the state of the link and the offset", Run: role,
		},
		{
			Name: "wait", Arity: 3, Flags: command.FlagBlocking | command.FlagFence, Categories: command.CatConnection, Group: "generic",
			Summary: "Waits until so many replicas have what was written before.", Syntax: "numreplicas timeout",
			Since: "1.0.0", Complexity: "O(1)", Reply: "how many replicas have it", Run: wait,
		},
	}
}

// handshake returns the commands of replicas.
func handshake() []*command.Command {
	const replica = command.FlagAdmin | command.FlagNoScript | command.FlagConnection | command.FlagFence
	return []*command.Command{
		{
			Name: "psync", Arity: -3, Flags: replica | command.FlagNoMulti, Group: "server",
			Summary: "Begins to send the stream of changes to a replica.", Syntax: "replicationid offset [FAILOVER]",
			Since: "1.0.0", Complexity: "O(1)", Reply: "FULLRESYNC or CONTINUE, then the stream", Run: psync,
		},
		{
			Name: "sync", Arity: 1, Flags: replica | command.FlagNoMulti, Group: "server",
			Summary: "Replies that replicas use PSYNC.", Since: "1.0.0", Complexity: "O(1)", Reply: "an error",
			Run: func(c *command.Call) { c.Fail(errSync) },
		},
		{
			Name: "replconf", Arity: -1, Flags: replica | command.FlagLoading | command.FlagStale | command.FlagAllowBusy, Group: "server",
			Summary: "Takes what a replica says of itself.", Syntax: "[option value ...]", Since: "1.0.0", Complexity: "O(1)",
			Reply: "OK; nothing to ACK, FACK and GETACK", Run: replconf,
		},
	}
}
