package admin

import (
	"log/slog"
	"strings"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

// configCommands returns the command CONFIG. names decides which arguments of CONFIG SET the slow
// log and MONITOR may show.
func configCommands(names *optionNames) []*command.Command {
	const flags = command.FlagAdmin | command.FlagNoScript | command.FlagLoading | command.FlagStale

	return []*command.Command{{
		Name: "config", Arity: -2, Group: "server",
		Summary: "A container for server configuration commands.", Since: "1.0.0",
		Sub: command.Entries(command.Defaults{Group: "server", Since: "1.0.0", Complexity: "O(1)"}, []*command.Command{
			{
				Name: "config|get", Arity: -3, Flags: flags,
				Summary: "Returns the values of parameters.", Syntax: "parameter [parameter ...]", Reply: "a map of names and values",
				Run: configGet, WordWork: 150, // WordWork is high because each argument is compared with hundreds of names
			},
			{
				Name: "config|reload", Arity: 2, Flags: command.FlagAdmin | command.FlagNoScript | command.FlagNoMulti | command.FlagAudit,
				Summary: "Reads the configuration and the files that it names again: all of it takes effect, or nothing.",
				Reply:   "OK, or an error with all faults", Run: configReload, WordWork: command.MaxLoopWork, Files: true,
			},
			{
				Name: "config|resetstat", Arity: 2, Flags: flags | command.FlagAudit,
				Summary: "Resets the statistics that INFO reports.", Reply: "OK", Run: configResetStat,
			},
			{
				Name: "config|rewrite", Arity: 2, Flags: flags | command.FlagAudit,
				Summary: "Writes the settings into the configuration file that the server was started with.", Reply: "OK, or an error",
				Run: configRewrite, Files: true,
			},
			{
				Name: "config|set", Arity: -4, Flags: flags | command.FlagAudit,
				Summary: "Sets parameters, all or none.", Syntax: "parameter value [parameter value ...]", Reply: "OK", Run: configSet,
				WordWork: command.MaxLoopWork, Files: true,
				Disclosure: command.Disclosure{AuditAttrs: auditConfigSet, Secrets: names.secrets},
			},
		}),
	}}
}

// auditConfigSet is the AuditAttrs function of CONFIG SET: it returns the names of the options.
func auditConfigSet(c *command.Call) []slog.Attr {
	return []slog.Attr{slog.String("options", knownOptions(c))}
}

func configGet(c *command.Call) {
	patterns := make([][]byte, 0, len(c.Args)-2)
	asked := make(map[string][]byte) // the keys are the names as the client wrote them, because the reply repeats them as in Redis
	for _, p := range c.Args[2:] {
		if len(p) > glob.MaxPattern {
			c.Fail(command.ErrPatternTooLong)
			return
		}
		lower := strings.ToLower(string(p))
		patterns, asked[lower] = append(patterns, []byte(lower)), p
	}
	pairs := c.Server.Options.Settings.Get(func(name string) bool {
		for _, p := range patterns {
			if glob.Match(p, []byte(name)) {
				return true
			}
		}
		return false
	})
	c.W.Map(len(pairs))
	for _, p := range pairs {
		if name, named := asked[p[0]]; named {
			c.W.Bulk(name)
		} else {
			c.W.BulkString(p[0])
		}
		c.W.BulkString(p[1])
	}
}

// errFilesInTransaction is the reply to a CONFIG SET in a transaction if it would read files: all
// clients would wait for the disk.
const errFilesInTransaction resp.Error = "ERR CONFIG SET of an option that names files is not allowed in transactions"

// configSet is the Run function of CONFIG SET. Outside of a transaction it runs in the background,
// because it may read files. In a transaction it fails for an option that names files. It also
// records the changed options in the list of changes.
func configSet(c *command.Call) {
	args := c.Args[2:]
	if len(args)%2 != 0 {
		c.Fail(resp.ErrSyntax)
		return
	}
	pairs := make([][2]string, 0, len(args)/2)
	for ; len(args) > 0; args = args[2:] {
		pairs = append(pairs, [2]string{string(args[0]), string(args[1])})
	}
	settings := c.Server.Options.Settings
	before := valuesOf(settings, pairs)
	if c.Client.Exclusive && settings.ReadsFiles(pairs) {
		c.Fail(errFilesInTransaction)
		return
	}
	var err resp.Error
	c.Server.Host.Work.Outside(c, func() { err = settings.Set(pairs) })
	if err != "" {
		c.Fail(err)
		return
	}
	if text := changedOptions(before, valuesOf(settings, pairs)); text != "" {
		c.Server.Changed("config", "CONFIG SET "+text, c.Client.By())
	}
	c.OK()
}

// errNoReload is the reply of CONFIG RELOAD if the commands run without a server process, as in
// tests.
const errNoReload resp.Error = "ERR this server has no configuration to reload"

// configReload is the Run function of CONFIG RELOAD. It runs in the background, because it reads
// files. If the reload has changed the user of the client, the client is closed after its reply.
func configReload(c *command.Call) {
	reload := c.Server.Options.Reload
	if reload == nil {
		c.Fail(errNoReload)
		return
	}
	var closes bool
	var err error
	c.Server.Host.Work.Outside(c, func() { closes, err = reload(c.Client.By(), c.Client.ID) })
	if err != nil {
		c.Fail(resp.Error("ERR CONFIG RELOAD failed, nothing has changed: " + oneLine(err)))
		return
	}
	c.Client.Closing = c.Client.Closing || closes
	c.OK()
}

// errNoFile is the reply of CONFIG REWRITE if there is no configuration file, with Redis' text.
const errNoFile resp.Error = "ERR The server is running without a config file"

// configRewrite is the Run function of CONFIG REWRITE. It reads and writes files in the background,
// and replies when that is done, except in a transaction.
func configRewrite(c *command.Call) {
	rewrite, file := c.Server.Options.Rewrite, c.Server.Process().ConfigFile()
	if rewrite == nil || file == "" {
		c.Fail(errNoFile)
		return
	}
	if c.Client.Exclusive {
		// Sentinel calls CONFIG REWRITE in a transaction, where all clients would wait for the
		// disk. So the reply OK only means that the rewrite has begun. A failure is logged.
		c.Server.Host.Work.Spawn(func() { _ = rewrite() })
		c.OK()
		return
	}
	c.MoveToBackground(func(c *command.Call) {
		var err error
		c.Server.Host.Work.Outside(c, func() { err = rewrite() })
		if err != nil {
			c.Fail(resp.Error("ERR Rewriting config file: " + oneLine(err)))
			return
		}
		c.OK()
	})
}

// maxFaults is the maximum size, in bytes, of the text of errors in a reply.
const maxFaults = 8 << 10

// oneLine returns the text of err, which has one fault on each line, as a single line of at most
// maxFaults bytes.
func oneLine(err error) string { return acl.FaultLine(err, "; ", maxFaults) }

func configResetStat(c *command.Call) {
	c.Server.BatchEnd(c.Worker) // the calls that this batch has counted were before the reset
	c.Server.Host.Measures.ResetStatistics()
	c.OK()
}
