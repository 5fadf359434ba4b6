package report

import (
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/acl"
)

// Offered returns the commands that reports offer as actions.
func Offered() []string {
	return []string{
		"rl.info", "del", "client|kill", "acl|setuser", "acl|log", "script|kill", "info", "bgrewriteaof", "rl.explain", "rl.reset", "rl.block", "rl.unblock",
		"rl.boost", "rl.unboost", "rl.exempt", "rl.unexempt", "rl.override|set", "rl.override|del",
	}
}

// action returns the action of a command. words are the command's name and arguments. danger says
// that clients notice the action. The Line of the result does not have the client program, such as
// redis-cli, which offered adds.
func action(id, name string, danger bool, words ...string) Action {
	a := Action{ID: id, Name: name, Danger: danger}
	var line []string
	for _, w := range words {
		a.Args = append(a.Args, Key(w))
		line = append(line, shellWord(w))
	}
	a.Line = strings.Join(line, " ")
	return a
}

// shellWord quotes a word for a shell. A word that is not text is written as $'...', which most
// shells support.
func shellWord(w string) string {
	plain := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_+=:,./-", r)
	}
	switch {
	case w != "" && strings.IndexFunc(w, plain) < 0:
		return w
	case strconv.Quote(w) != `"`+w+`"` && strings.ContainsFunc(w, func(r rune) bool { return r < ' ' || r >= 0x7f }):
		var b strings.Builder
		b.WriteString("$'")
		for i := range len(w) {
			if c := w[i]; c < ' ' || c >= 0x7f || c == '\'' || c == '\\' {
				b.WriteString(`\x` + strconv.FormatUint(uint64(c)+0x100, 16)[1:])
			} else {
				b.WriteByte(c)
			}
		}
		b.WriteByte('\'')
		return b.String()
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// actionsOnKey returns the possible actions on the key of k. clause has the arguments that RL.INFO
// needs after the key; nil if it needs none.
func actionsOnKey(k *KeyState, clause []string) []Action {
	all := []Action{action("look", "Look", false, append([]string{"RL.INFO", string(k.Key)}, clause...)...)}
	if k.Policy != nil {
		all = append(all, actionsOnPolicy(k.Policy)...)
	} else {
		all = append(all, action("del", "Reset once", false, "DEL", string(k.Key)))
	}
	for i, c := range k.Clients {
		if i == 3 {
			break
		}
		id := strconv.FormatInt(c.ID, 10)
		all = append(all, action("kill", "Cut client "+id, true, "CLIENT", "KILL", "ID", id))
	}
	for i, c := range k.Clients {
		if c.User != acl.DefaultUser && (i == 0 || c.User != k.Clients[0].User) {
			all = append(all, action("off", "Stop logins of "+c.User.shown(), true, "ACL", "SETUSER", string(c.User), "off"))
			break
		}
	}
	return all
}

// actionsOn returns the possible actions on the verdict v; nil if there are none.
func actionsOn(v *Verdict) []Action {
	switch v.Kind {
	case Script:
		end := action("scriptkill", "End the script", true, "SCRIPT", "KILL")
		if v.Client == 0 {
			return []Action{end}
		}
		id := strconv.FormatInt(v.Client, 10)
		return []Action{end, action("kill", "Cut client "+id, true, "CLIENT", "KILL", "ID", id)}
	case LockedOut:
		return []Action{action("look", "Who was refused", false, "ACL", "LOG", "20")}
	case State:
		return []Action{action("look", "Look", false, "INFO", "persistence"), action("rewrite", "Write a new log", false, "BGREWRITEAOF")}
	case Memory:
		return []Action{action("look", "Look", false, "INFO", "memory")}
	}
	return nil
}

// commandName returns the name of a command in lower case: its first word or, if words is 2, its
// first two words separated by '|'.
func commandName(args []Key, words int) string {
	name := string(args[0])
	if words == 2 && len(args) > 1 {
		name += "|" + string(args[1])
	}
	return strings.ToLower(name)
}
