package commands

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/tracking"
	"github.com/cellserver/cellserver/resp"
)

func TestTableLookup(t *testing.T) {
	table := NewTable()
	for _, c := range table.Top() {
		require.Same(t, c, table.Lookup([]byte(c.Name)))
		require.Same(t, c, table.Lookup([]byte(strings.ToUpper(c.Name))))
		require.Nil(t, table.Lookup([]byte(c.Name+"!")), c.Name)
		require.Nil(t, table.Lookup([]byte("x"+c.Name)), c.Name)
		for _, sub := range c.Sub {
			word := sub.Name[len(c.Name)+1:]
			require.Same(t, sub, c.Subcommand([]byte(strings.ToUpper(word))))
			require.Same(t, sub, table.Find([]byte(sub.Name)))
			require.Nil(t, c.Subcommand([]byte(word+"\x00")))
		}
	}
	for _, name := range []string{"", "\x00", "cl.throttle\x00", strings.Repeat("x", 1<<20), "get\r", "ｇｅｔ", "client|list|x"} {
		require.Nil(t, table.Lookup([]byte(name)), "%.20q", name)
	}
}

// TestTableSlots: the table has enough free slots for short lookups.
func TestTableSlots(t *testing.T) {
	table := NewTable()
	require.GreaterOrEqual(t, len(table.Slots), 4*len(table.Sorted))
	run, longest := 0, 0
	for range 2 {
		for _, c := range table.Slots {
			if run++; c.Cmd == nil {
				run = 0
			}
			longest = max(longest, run)
		}
	}
	require.LessOrEqual(t, longest, 12)
}

// TestEntriesArePublishable: the fields of each entry are consistent.
func TestEntriesArePublishable(t *testing.T) {
	for _, c := range NewTable().All() {
		require.Equal(t, strings.ToLower(c.Name), c.Name)
		require.True(t, strings.HasSuffix(c.Summary, "."), c.Name)
		require.False(t, c.Flags&command.FlagWrite != 0 && c.Flags&command.FlagReadonly != 0, "%s writes and does not", c.Name)
		if c.Keys.Count > 0 {
			require.NotZero(t, c.Flags&command.FlagMovableKeys, c.Name)
		}
		if c.Categories&command.CatRateLimit != 0 && c.Flags&command.FlagWrite != 0 {
			require.True(t, c.Keys.First == 1 || c.Keys.Count > 0 || c.Keys.Derived != nil, "%s has no key", c.Name)
		}
		if c.Name != "rl.multi" && strings.HasPrefix(c.Syntax, "key") {
			require.NotZero(t, c.Keys.First, "%s has a key that it does not declare", c.Name)
		}
		for _, sub := range c.Sub {
			require.Same(t, c, sub.Parent)
			require.True(t, strings.HasPrefix(sub.Name, c.Name+"|"), sub.Name)
			require.Empty(t, sub.Sub)
		}
	}
}

// TestKeyPositions: the positions of each command's keys, which transactions (for locks), the
// check of key lengths and COMMAND GETKEYS use.
func TestKeyPositions(t *testing.T) {
	table := NewTable()
	for call, want := range map[string]string{
		"cl.throttle k 1 2 3":              "k",
		"cl.throttle":                      "",
		"del a b c":                        "a b c",
		"rename a b":                       "a b",
		"rename a":                         "a",
		"rl.multi 2 a b CL 1 1 1 CL 1 1 1": "a b",
		"rl.multi 3 a b":                   "",
		"rl.multi 0 a":                     "",
		"rl.multi -1 a":                    "",
		"rl.multi x a":                     "",
		"rl.multi":                         "",
		"rl.multi 9223372036854775807 a CL 1 1 1": "",
		"rl.commit a r 1 2 policy":                "a",
		"rl.commit a r 1 policy p":                "",
		"rl.cancel a policy p":                    "a",
		"rl.cancel a policy policy p":             "",
		"rl.renew a r 5 ms":                       "a",
		"rl.renew a r 5 ms policy p":              "",
		"watch a b":                               "a b",
		"expire k 1":                              "k",
		"sw.allow k 1 1 BLOCK 0":                  "k",
		"cc.release k m":                          "k",
		"object|encoding encoding k":              "k",
		"memory|usage usage k samples 5":          "k",
		"keys *":                                  "",
		"client|kill kill 127.0.0.1:1":            "",
	} {
		words := strings.Fields(call)
		cmd := table.Find([]byte(words[0]))
		require.NotNil(t, cmd, call)
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		var keys []string
		for _, i := range cmd.Keys.Positions(args) {
			keys = append(keys, words[i])
		}
		require.Equal(t, want, strings.Join(keys, " "), call)
	}
}

// TestCommandsTouchOnlyTheirKeysOrSaySo: a transaction locks only the keys that its commands
// name, so a command that accesses others has to be marked.
func TestCommandsTouchOnlyTheirKeysOrSaySo(t *testing.T) {
	spans := map[string]bool{}
	for _, c := range NewTable().All() {
		if c.SpansKeyspace() && !strings.HasSuffix(c.Name, "|help") {
			spans[c.Name] = true
		}
	}
	want := map[string]bool{"randomkey": true, "dbsize": true, "flushdb": true, "flushall": true, "scan": true, "keys": true, "info": true, "memory|stats": true}
	for _, name := range []string{"rl.use", "rl.explain", "rl.reset", "rl.commit", "rl.cancel", "rl.renew"} {
		want[name] = true // the keys of a call depend on its policy
	}
	require.Equal(t, want, spans)
}

func TestEchoedNamesAreCut(t *testing.T) {
	long := strings.Repeat("x", 300)
	got := string(NewTable().Unknown([][]byte{[]byte(long), []byte("a\x00b"), []byte(long), []byte("never")}))
	require.Equal(t, "ERR unknown command '"+long[:128]+"', with args beginning with: 'a' '"+long[:124]+"' ", got)
	require.Equal(t, resp.Error("ERR unknown subcommand 'nope'. Try CLIENT HELP."), NewTable().UnknownSub(NewTable().Find([]byte("client")), []byte("nope")))
}

// TestLookupIgnoresCaseOnly looks up each name in random cases, and each name with one bit
// changed, which only command.EqualFold distinguishes.
func TestLookupIgnoresCaseOnly(t *testing.T) {
	table := NewTable()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range table.Top() {
		for range 20 {
			name := []byte(c.Name)
			for i := range name {
				if 'a' <= name[i] && name[i] <= 'z' && rng.IntN(2) == 0 {
					name[i] -= 'a' - 'A'
				}
			}
			require.Same(t, c, table.Lookup(name), "%s", name)
		}
		for i := range len(c.Name) {
			for bit := range 8 {
				name := []byte(c.Name)
				name[i] ^= 1 << bit
				if got := table.Lookup(name); got != nil {
					require.True(t, command.EqualFold(name, got.Name), "%q is taken for %s", name, got.Name)
				}
			}
		}
		require.NotSame(t, c, table.Lookup([]byte(c.Name+"\x00")))
		require.NotSame(t, c, table.Lookup([]byte(c.Name[1:])))
	}
	require.Nil(t, table.Lookup(nil))
	require.Nil(t, table.Lookup(bytes.Repeat([]byte("x"), 1<<10)))
	require.False(t, command.EqualFold([]byte("g\x05t"), "get"))
	require.False(t, command.EqualFold([]byte("@"), "`"), "only letters have a case")
}

// TestEveryEntryOfAGroupIsInTheTable: a subcommand whose container is in no group is left out
// silently, so that its group works without the group of the container. This test finds a
// misspelled container.
func TestEveryEntryOfAGroupIsInTheTable(t *testing.T) {
	table := NewTable()
	for _, g := range Groups() {
		for _, c := range g.Commands {
			require.NotNil(t, table.Find([]byte(c.Name)), c.Name)
		}
	}
	require.Nil(t, command.NewTable([]command.Group{tracking.Group()}).Find([]byte("client|tracking")))
}

// TestGroupsShareTheirParts: a part that several groups need is in a table once, and not at all
// if no group of the table needs it.
func TestGroupsShareTheirParts(t *testing.T) {
	made := 0
	part := &command.Group{Server: func(*command.Server, command.Slot) (any, command.Hooks) {
		made++
		return nil, command.Hooks{Serve: func(*command.Call) {}}
	}}
	needs := []*command.Group{part}
	for want, groups := range [][]command.Group{{{}}, {{Needs: needs}, {}, {Needs: needs}}} {
		made = 0
		s := &command.Server{Commands: command.NewTable(groups)}
		s.Equip()
		require.Equal(t, want, made)
	}
}

// TestTooManyGroups: creating a table with too many groups panics at start-up.
func TestTooManyGroups(t *testing.T) {
	require.PanicsWithValue(t, "command: 99 groups and parts, of 24 at most", func() { command.NewTable(make([]command.Group, 99)) })
}

// TestStrangersReachFewCommands: a client that has not authenticated can call exactly these
// commands.
func TestStrangersReachFewCommands(t *testing.T) {
	var open []string
	for _, c := range NewTable().All() {
		if c.Flags&command.FlagNoAuth != 0 {
			open = append(open, c.Name)
		}
	}
	require.Equal(t, []string{"auth", "hello", "quit", "reset"}, open)
}
