package scripting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/commands/scripting"
)

// TestScriptsThatTouchOnlyTheirKeys: a script locks only its KEYS if all its commands access only
// these, and else all keys.
func TestScriptsThatTouchOnlyTheirKeys(t *testing.T) {
	table := commands.NewTable()
	for source, want := range map[string]bool{
		"return redis.call('get', KEYS[1])":                                       true,
		"return redis.call('GET', KEYS[1])":                                       true,
		"return redis.call('rename', KEYS[1], KEYS[2])":                           true,
		"return redis.call('del', KEYS[1], KEYS[2])":                              true,
		"return redis.call('expire', KEYS[1], ARGV[1])":                           true,
		"return redis.call('ping')":                                               true,
		"return redis.call('nosuch', 'k')":                                        true,
		"return 1":                                                                true,
		"return redis.call('get', ARGV[1])":                                       false,
		"return redis.call('get', 'k')":                                           false,
		"return redis.call('rename', KEYS[1], ARGV[1])":                           false,
		"return redis.call('del', KEYS[1], 'k')":                                  false,
		"return redis.call('del', unpack(KEYS))":                                  false,
		"return redis.call(ARGV[1], KEYS[1])":                                     false,
		"return redis.call('dbsize')":                                             false,
		"return redis.call('flushall')":                                           false,
		"return redis.call('rl.multi', 1, KEYS[1], 'CL', 1)":                      false,
		"return redis.call('rl.commit', KEYS[1], 'r', ARGV[1])":                   false,
		"return redis.call('rl.commit', KEYS[1], 'r', ARGV[1], ARGV[2], ARGV[3])": false,
		"return redis.call('rl.commit', ARGV[1], 'r', 1)":                         false,
		"return redis.call('rl.cancel', KEYS[1], 'r')":                            false,
		"return redis.call('rl.cancel', KEYS[1], 'r', 'POLICY', 'p')":             false,
		"return redis.call('rl.cancel', KEYS[1], unpack(ARGV))":                   false,
		"return redis.call('rl.renew', KEYS[1], 'r', 5, 'MS')":                    false,
		"return redis.call('rl.renew', KEYS[1], 'r', 5, ARGV[1], ARGV[2])":        false,
		"return redis.call('rl.use', 'p', KEYS[1])":                               false,
		"return redis.call('object', 'encoding', KEYS[1])":                        false,
		"for i = 1, 2 do redis.call('get', KEYS[1]) end":                          true,
		"while true do redis.call('get', KEYS[1]) end":                            false,
		"local k = KEYS[1] return redis.call('get', k .. 'x')":                    false,
	} {
		keysOnly, err := scripting.KeysOnly(table, source)
		require.Empty(t, err, source)
		require.Equal(t, want, keysOnly, source)
	}
}
