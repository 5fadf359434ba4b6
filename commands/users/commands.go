package users

import (
	"crypto/rand"
	"encoding/hex"
	"iter"
	"slices"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// Group returns the command group of ACL and its subcommands.
func Group() command.Group {
	return command.Group{Commands: command.With(command.FlagLocal, container())}
}

func container() *command.Command {
	const calm = command.FlagNoScript | command.FlagLoading | command.FlagStale

	const admin = command.FlagAdmin
	rules := stats.SecretsFrom(2) // rules may contain passwords
	return &command.Command{
		Name: "acl", Arity: -2, Group: "server", Summary: "A container for access list commands.", Since: "1.0.0",
		Sub: command.Entries(command.Defaults{Group: "server", Since: "1.0.0", Complexity: "O(1)"}, []*command.Command{
			{
				Name: "acl|cat", Arity: -2, Flags: calm,
				Summary: "Lists the categories, or the commands of one.", Syntax: "[category]", Reply: "an array of names", Run: cat,
			},
			{
				Name: "acl|deluser", Arity: -3, Flags: calm | admin | command.FlagFence | command.FlagAudit,
				Summary: "Deletes users and closes their connections.", Syntax: "username [username ...]", Reply: "how many there were",
				Run: deluser, Disclosure: command.Disclosure{Change: "acl", Named: 4, Secrets: rules},
			},
			{
				Name: "acl|dryrun", Arity: -4, Flags: calm | admin,
				Summary: "Says whether a user may run a command, without running it.", Syntax: "username command [arg [arg ...]]",
				Reply: "OK, or what the user may not do", Run: dryrun,
			},
			{
				Name: "acl|genpass", Arity: -2, Flags: calm,
				Summary: "Makes a random password, of 256 bits unless it is told otherwise.", Syntax: "[bits]", Reply: "hexadecimal digits",
				Run: genpass,
			},
			{
				Name: "acl|getuser", Arity: 3, Flags: calm | admin,
				Summary: "Returns the rules of a user.", Syntax: "username", Reply: "a map, or null", Run: getuser,
				Disclosure: command.Disclosure{Secrets: rules},
			},
			{
				Name: "acl|list", Arity: 2, Flags: calm | admin | command.FlagFence,
				Summary: "Lists the rules of all users.", Reply: "an array of rules", Run: list, WordWork: command.MaxLoopWork,
				ReplySize: sizeOfAll, // the reply may be long, because there may be many users
			},
			{
				Name: "acl|load", Arity: 2, Flags: calm | admin | command.FlagFence | command.FlagNoMulti | command.FlagAudit,
				Summary: "Reads the ACL file again and closes the connections of users that it changes.", Reply: "OK", Run: load,
				WordWork: command.MaxLoopWork, Files: true, Disclosure: command.Disclosure{Change: "acl"},
			},
			{
				Name: "acl|log", Arity: -2, Flags: calm | admin,
				Summary: "Lists the newest calls and logins that were refused.", Syntax: "[count | RESET]",
				Reply: "an array of maps, or OK",
				Run:   aclLog,
			},
			{
				Name: "acl|save", Arity: 2, Flags: calm | admin | command.FlagFence | command.FlagNoMulti,
				Summary: "Writes the ACL file.", Reply: "OK", Run: save, WordWork: command.MaxLoopWork, Files: true,
			},
			{
				Name: "acl|setuser", Arity: -3, Flags: calm | admin | command.FlagFence | command.FlagAudit,
				Summary: "Creates a user, or changes its rules.", Syntax: "username [rule [rule ...]]", Reply: "OK", Run: setuser,
				WordWork: ruleWork, Disclosure: command.Disclosure{Change: "acl", Named: 1, Secrets: rules},
			},
			{
				Name: "acl|users", Arity: 2, Flags: calm | admin | command.FlagFence,
				Summary: "Lists the users.", Reply: "an array of names", Run: names, WordWork: command.MaxLoopWork,
				ReplySize: sizeOfAll,
			},
			{
				Name: "acl|whoami", Arity: 2, Flags: calm,
				Summary: "Returns the user of the connection.", Reply: "a name",
				Run: func(c *command.Call) { c.W.BulkString(c.Client.UserName()) },
			},
		}),
	}
}

// sizeOfAll is the ReplySize function of commands that show all users. It returns an upper bound in
// bytes: the text of a password hash is twice as long as the hash in memory.
func sizeOfAll(cl *command.Client, _ env.Store, _ *command.Command, _ [][]byte) int {
	return int(2 * cl.Server.Users.Memory())
}

// ruleWork is the approximate work, in units, of a rule about a category.
const ruleWork = 100

func writeWords(w *resp.Writer, words []string) {
	w.Array(len(words))
	for _, word := range words {
		w.BulkString(word)
	}
}

// cat is the Run function of ACL CAT. It replies with the categories or, with an argument, with the
// commands of that category.
func cat(c *command.Call) {
	if len(c.Args) > 3 {
		c.Fail(command.SubcommandSyntax(c))
		return
	}
	var names []string
	if len(c.Args) == 2 {
		for _, n := range command.CategoryNames {
			names = append(names, n.Name)
		}
		writeWords(c.W, names)
		return
	}
	ids, ok := c.Server.Commands.Category(string(c.Args[2]))
	if !ok {
		c.Fail(resp.Error("ERR Unknown category '" + string(command.Echo(c.Args[2], command.MaxEcho)) + "'"))
		return
	}
	for _, id := range ids {
		names = append(names, c.Server.Commands.All()[id].Name)
	}
	writeWords(c.W, names)
}

func list(c *command.Call) {
	n, lines := c.Server.Users.Lines()
	writeAll(c, n, lines)
}

func names(c *command.Call) {
	all := c.Server.Users.Names()
	writeAll(c, len(all), slices.Values(all))
}

const errTooManyUsers resp.Error = "ERR the reply is too long, use ACL GETUSER for one user"

// writeAll replies with an array of n lines, or with an error if that reply is too long.
func writeAll(c *command.Call, n int, lines iter.Seq[string]) {
	reply := elements.WholeOf(c.W, n)
	c.W.Array(n)
	for line := range lines {
		c.W.BulkString(line)
		if !reply.More() {
			c.W.Cut(reply.Mark)
			c.Fail(errTooManyUsers)
			return
		}
	}
}

// defaultBits and maxBits are the default and the maximum length, in bits, of a password that ACL
// GENPASS creates.
const defaultBits, maxBits = 256, 4096

// genpass is the Run function of ACL GENPASS. It replies with random bits as hexadecimal digits:
// defaultBits or, with an argument, from 1 to maxBits. A number of bits that is no multiple of 4 is
// rounded up.
func genpass(c *command.Call) {
	if len(c.Args) > 3 {
		c.Fail(command.SubcommandSyntax(c))
		return
	}
	bits := int64(defaultBits)
	if len(c.Args) == 3 {
		n, ok := arg.Int(c.Args[2])
		if !ok {
			c.Fail(resp.ErrNotInteger)
			return
		}
		if bits = n; bits <= 0 || bits > maxBits {
			c.Fail("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096")
			return
		}
	}
	digits := (bits + 3) / 4
	random := make([]byte, (digits+1)/2)
	_, _ = rand.Read(random) // Read never fails, as its documentation says
	c.W.BulkString(hex.EncodeToString(random)[:digits])
}

func getuser(c *command.Call) {
	u := c.Server.Users.Find(string(c.Args[2]))
	if u == nil {
		c.W.Null()
		return
	}
	r := u.Rules()
	w := c.W
	w.Map(6)
	w.BulkString("flags")
	flags := r.Flags()
	w.Set(len(flags))
	for _, flag := range flags {
		w.BulkString(flag)
	}
	w.BulkString("passwords")
	writeWords(w, r.Passwords())
	root, others := r.Selectors()[0], r.Selectors()[1:]
	writeSelector(w, root)
	w.BulkString("selectors")
	w.Array(len(others))
	for _, s := range others {
		w.Map(3)
		writeSelector(w, s)
	}
}

func writeSelector(w *resp.Writer, s *acl.Selector) {
	w.BulkString("commands")
	w.BulkString(s.CommandRules())
	w.BulkString("keys")
	w.BulkString(s.KeyRules())
	w.BulkString("channels")
	w.BulkString(s.ChannelRules())
}
