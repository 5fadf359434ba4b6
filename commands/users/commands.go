package users

import (
	"crypto/rand"
	"encoding/hex"
	"iter"
	"slices"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/elements"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// Group returns ACL with its subcommands.
func Group() command.Group {
	return command.Group{Commands: command.With(command.FlagLocal, container())}
}

func container() *command.Command {
	const calm = command.FlagNoScript | command.FlagLoading | command.FlagStale
	sub := func(name string, arity int, f command.Flag, syntax, summary, reply string, run func(*command.Call)) *command.Command {
		cmd := command.Subcommand("acl", name, arity, calm|f, syntax, summary, reply, run)
		if name == "setuser" || name == "getuser" || name == "deluser" { // rules contain passwords
			cmd.Secrets = stats.SecretsFrom(2)
		}
		return cmd
	}
	const admin = command.FlagAdmin
	all := &command.Command{
		Name: "acl", Arity: -2, Group: "server", Summary: "A container for access list commands.", Since: "1.0.0",
		Sub: []*command.Command{
			sub("cat", -2, 0, "[category]", "Lists the categories, or the commands of one.", "an array of names", cat),
			sub("deluser", -3, admin|command.FlagFence|command.FlagAudit, "username [username ...]", "Deletes users and closes their connections.", "how many there were", deluser),
			sub("dryrun", -4, admin, "username command [arg [arg ...]]", "Says whether a user may run a command, without running it.", "OK, or what the user may not do", dryrun),
			sub("genpass", -2, 0, "[bits]", "Makes a random password, of 256 bits unless it is told otherwise.", "hexadecimal digits", genpass),
			sub("getuser", 3, admin, "username", "Returns the rules of a user.", "a map, or null", getuser),
			sub("list", 2, admin|command.FlagFence, "", "Lists the rules of all users.", "an array of rules", list),
			sub("load", 2, admin|command.FlagFence|command.FlagNoMulti|command.FlagAudit, "", "Reads the ACL file again and closes the connections of users that it changes.", "OK", load),
			sub("log", -2, admin, "[count | RESET]", "Lists the newest calls and logins that were refused.", "an array of maps, or OK", aclLog),
			sub("save", 2, admin|command.FlagFence|command.FlagNoMulti, "", "Writes the ACL file.", "OK", save),
			sub("setuser", -3, admin|command.FlagFence|command.FlagAudit, "username [rule [rule ...]]", "Creates a user, or changes its rules.", "OK", setuser),
			sub("users", 2, admin|command.FlagFence, "", "Lists the users.", "an array of names", names),
			sub("whoami", 2, 0, "", "Returns the user of the connection.", "a name", func(c *command.Call) { c.W.BulkString(c.Client.UserName()) }),
		},
	}
	for _, c := range all.Sub {
		switch c.Name {
		case "acl|load", "acl|save": // they may wait for the disk
			c.WordWork, c.Files = command.MaxLoopWork, true
		case "acl|list", "acl|users": // there may be many users
			c.WordWork, c.ReplySize = command.MaxLoopWork, sizeOfAll
		case "acl|setuser":
			c.WordWork = ruleWork
		}
	}
	return all
}

// sizeOfAll is the field ReplySize of commands that show all users: an upper estimate. The text
// of a password hash has twice as many bytes as the hash in memory.
func sizeOfAll(cl *command.Client, _ env.Store, _ *command.Command, _ [][]byte) int {
	return int(2 * cl.Server.Users.Memory())
}

// ruleWork is the approximate work of a rule about a category.
const ruleWork = 100

func writeWords(w *resp.Writer, words []string) {
	w.Array(len(words))
	for _, word := range words {
		w.BulkString(word)
	}
}

// cat implements ACL CAT.
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

// list implements ACL LIST.
func list(c *command.Call) {
	n, lines := c.Server.Users.Lines()
	writeAll(c, n, lines)
}

// names implements ACL USERS.
func names(c *command.Call) {
	all := c.Server.Users.Names()
	writeAll(c, len(all), slices.Values(all))
}

const errTooManyUsers resp.Error = "ERR the reply is too long, use ACL GETUSER for one user"

// writeAll writes a line for each of n users. The lines may take megabytes, so finished parts are
// accounted as a long reply.
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

// defaultBits is the default length of a password that ACL GENPASS makes, in bits, and maxBits
// the largest.
const defaultBits, maxBits = 256, 4096

// genpass implements ACL GENPASS.
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
	_, _ = rand.Read(random) // it never fails, according to its documentation
	c.W.BulkString(hex.EncodeToString(random)[:digits])
}

// getuser implements ACL GETUSER.
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
