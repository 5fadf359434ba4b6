package policies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
)

// ruleFiles returns the directory of the rules that testdata/rules/cellserver/rules.script is about.
func ruleFiles(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("testdata", "rules", "files"))
	require.NoError(t, err)
	return dir
}

// TestRules plays testdata/rules/cellserver/rules.script on servers with the rules of the folder beside it.
func TestRules(t *testing.T) {
	all, err := script.LoadDir("testdata/rules")
	require.NoError(t, err)
	require.Len(t, all, 1)
	for _, section := range all[0].Sections {
		section.Config = append(section.Config, [2]string{"rls-config", ruleFiles(t)})
		for _, proto := range section.Protocols {
			t.Run(section.RunName(proto), func(t *testing.T) { inproc.PlaySection(t, all[0], section, proto, nil) })
		}
	}
}

// manyRules writes a file of n rules, each with a step of the given length, and returns its path.
func manyRules(t *testing.T, n, length int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("domain: d\ndescriptors:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {key: k%0*d, rate_limit: {unit: day, requests_per_unit: 1}}\n", length-1, i)
	}
	file := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

// TestManyRulesAreShownPartByPart: a reply has at most 1,000 rules, and OFFSET leads to all of them.
func TestManyRulesAreShownPartByPart(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start("--rls-config", manyRules(t, 2500, 6)).Dial()
		require.Equal(t, 100, strings.Count(c.Say("RL.RULES"), inproc.Bulk("place")))
		require.Equal(t, 100, strings.Count(c.Say("RL.RULES d"), inproc.Bulk("place")))
		for from, want := range map[int]int{0: 1000, 1000: 1000, 2000: 500, 2499: 1, 2500: 0} {
			reply := c.Say(fmt.Sprintf("RL.RULES d OFFSET %d COUNT 1000", from))
			require.Contains(t, reply, inproc.Bulk("total")+":2500\r\n")
			require.Equal(t, want, strings.Count(reply, inproc.Bulk("place")), from)
			if want > 0 {
				require.Contains(t, reply, inproc.Bulk(fmt.Sprintf("k%05d", from)))
				require.Contains(t, reply, inproc.Bulk(fmt.Sprintf("k%05d", from+want-1)))
			}
		}
	})
}

// TestLongListsOfRulesAreOnTheAccountOfLongReplies: lists of rules count as long replies until they are read.
func TestLongListsOfRulesAreOnTheAccountOfLongReplies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--rls-config", manyRules(t, 1000, 1000))
		c := s.Dial()
		c.Command("RL.RULES", "COUNT", "1000")
		w.Settle()
		require.Greater(t, s.Engine().LargeReplies(), int64(1000*1000))
		require.Equal(t, 1000, strings.Count(c.Reply(), inproc.Bulk("place")))
		w.Settle()
		require.Zero(t, s.Engine().LargeReplies())
	})
}

// TestWhoMaySeeRules: the commands need @policy, and no key.
func TestWhoMaySeeRules(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--rls-config", ruleFiles(t))
		admin := s.Dial()
		calls := []string{"RL.RULES shop", "RL.MATCH shop foo=x"}
		app := s.Dial().As(admin, "~*", "+@all", "-@policy")
		deniedAll(t, app, calls)
		support := s.Dial().As(admin, "+@policy", "-@admin")
		for _, words := range calls {
			require.True(t, strings.HasPrefix(support.Say(words), "*"), words)
		}
		one := s.Dial().As(admin, "+rl.match")
		deniedAll(t, one, calls[:1])
		require.Contains(t, one.Say(calls[1]), inproc.Bulk("rls.shop.foo"))
	})
}

// TestRulesOfAReplica: a replica shows the rules of its own files.
func TestRulesOfAReplica(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		a, b := w.Start(), w.Start("--rls-config", ruleFiles(t))
		b.Follow(a)
		c := b.Dial()
		require.Contains(t, c.Say("RL.RULES shop"), inproc.Bulk("total")+":6\r\n")
		require.Contains(t, c.Say("RL.MATCH shop foo=x"), inproc.Bulk("rls.shop.foo"))
	})
}

// TestLimitsOfLimitadorAreShown: RL.RULES lists the limits of a file behind the rules, part by part.
func TestLimitsOfLimitadorAreShown(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		file := filepath.Join(t.TempDir(), "limits.yaml")
		require.NoError(t, os.WriteFile(file, []byte(`
- {namespace: d, name: user, max_value: 3, seconds: 60, conditions: ["descriptors[0].a == 'b'"], variables: ["descriptors[0].user"]}
- {namespace: other, max_value: 9, seconds: 1, conditions: [], variables: []}`), 0o600))
		c := w.Start("--limitador-limits", file).Dial()
		text := func(words ...string) (all string) {
			for _, word := range words {
				all += inproc.Bulk(word)
			}
			return all
		}
		user := "*18\r\n" + text("domain", "d", "steps") + "*2\r\n" + text("descriptors[0].a == 'b'", "descriptors[0].user", "policy", "lim.d.user", "limit", "SW 3 60 FIXED ANCHOR FIRST", "unit", "", "name", "user", "replaces") +
			"*0\r\n" + text("flags") + "*1\r\n" + text("limitador", "place", file+":2")
		require.Equal(t, "*4\r\n"+text("total")+":1\r\n"+text("rules")+"*1\r\n"+user, c.Say("RL.RULES d"))
		require.Contains(t, c.Say("RL.RULES"), text("total")+":2\r\n")
		require.Equal(t, "-ERR No such domain 'none'\r\n", c.Say("RL.RULES none"))
		require.Equal(t, "-ERR there are no rules: see the option rls-config\r\n", c.Say("RL.MATCH d a=b"))

		c = w.Start("--limitador-limits", file, "--rls-config", manyRules(t, 3, 6)).Dial()
		for from, want := range map[int][]string{0: {"k00000", "k00001"}, 1: {"k00001", "k00002"}, 2: {"k00002", "user"}, 3: {"user", "lim.other."}, 4: {"lim.other."}, 5: nil} {
			reply := c.Say(fmt.Sprintf("RL.RULES OFFSET %d COUNT 2", from))
			require.Contains(t, reply, text("total")+":5\r\n")
			require.Equal(t, len(want), strings.Count(reply, text("place")))
			for _, part := range want {
				require.Contains(t, reply, part)
			}
		}
		require.Contains(t, c.Say("RL.RULES d"), text("total")+":4\r\n")
	})
}
