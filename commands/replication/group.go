package replication

import "github.com/cellserver/cellserver/command"

// Group returns the command group of REPLICAOF, FAILOVER, ROLE, WAIT, PSYNC and REPLCONF, with the
// figures of replication.
func Group() command.Group {
	return command.Group{
		Commands: command.With(command.FlagLocal, append(orders(), handshake()...)...),
		Figures:  figures(),
	}
}

// orders returns the commands that operators and ordinary clients call: REPLICAOF, SLAVEOF,
// FAILOVER, ROLE and WAIT.
func orders() []*command.Command {
	const admin = command.FlagAdmin | command.FlagNoScript | command.FlagStale | command.FlagFence | command.FlagAudit

	return command.Entries(command.Defaults{Group: "server", Since: "1.0.0", Complexity: "O(1)"}, []*command.Command{
		{
			Name: "replicaof", Arity: 3, Flags: admin | command.FlagSyncing,
			Summary: "Makes the server a replica of another one, or a primary.", Syntax: "<host port | NO ONE>",
			Reply: "OK: the work continues in the background", Run: follow, Disclosure: command.Disclosure{AuditAttrs: auditFollow},
		},
		{
			Name: "slaveof", Arity: 3, Flags: admin | command.FlagSyncing,
			Summary: "Does the same as REPLICAOF.", Syntax: "<host port | NO ONE>", Reply: "OK: the work continues in the background", Run: follow,
			Disclosure: command.Disclosure{AuditAttrs: auditFollow},
		},
		{
			Name: "failover", Arity: -1, Flags: admin,
			Summary: "Hands over to a replica without losing a decision.",
			Syntax:  "[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]", Reply: "OK: the failover continues in the background", Run: failover,
		},
		{
			Name: "role", Arity: 1, Flags: command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagFast,
			Categories: command.CatAdmin | command.CatDangerous,
			Summary:    "Returns the replication role.",
			Reply:      "master, the offset and the replicas; or slave, the primary, the state of the link and the offset", Run: role,
		},
		{
			Name: "wait", Arity: 3, Flags: command.FlagBlocking | command.FlagFence, Categories: command.CatConnection, Group: "generic",
			Summary: "Waits until so many replicas have what was written before.", Syntax: "numreplicas timeout",
			Reply: "how many replicas have it", Run: wait,
		},
	})
}

// handshake returns the commands that replicas call: PSYNC, SYNC and REPLCONF.
func handshake() []*command.Command {
	const replica = command.FlagAdmin | command.FlagNoScript | command.FlagConnection | command.FlagFence
	return command.Entries(command.Defaults{Group: "server", Since: "1.0.0", Complexity: "O(1)"}, []*command.Command{
		{
			Name: "psync", Arity: -3, Flags: replica | command.FlagNoMulti,
			Summary: "Begins to send the stream of changes to a replica.", Syntax: "replicationid offset [FAILOVER]",
			Reply: "FULLRESYNC or CONTINUE, then the stream", Run: psync,
		},
		{
			Name: "sync", Arity: 1, Flags: replica | command.FlagNoMulti,
			Summary: "Replies that replicas use PSYNC.", Reply: "an error", Run: func(c *command.Call) { c.Fail(errSync) },
		},
		{
			Name: "replconf", Arity: -1, Flags: replica | command.FlagLoading | command.FlagStale | command.FlagAllowBusy,
			Summary: "Takes what a replica says of itself.", Syntax: "[option value ...]", Reply: "OK; nothing to ACK, FACK and GETACK",
			Run: replconf,
		},
	})
}
