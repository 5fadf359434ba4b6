package inproc

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
)

// Replies with all that [Client.FillShort] has made are longer than what a kernel takes of them.
const (
	ShortValues = 600
	ShortSize   = 15_000
)

// FillShort makes keys of short strings, which it returns, and a hash, a list and a set of as many
// elements with their names.
func (c *Client) FillShort() (keys []string) {
	c.tb.Helper()
	for i := range ShortValues {
		key := fmt.Sprintf("value:%d", i)
		value := fmt.Sprintf("%05d", i) + strings.Repeat("v", ShortSize-5)
		require.Equal(c.tb, OK, c.Do("SET", key, value))
		c.Do("HSET", "hash", key, value)
		c.Do("RPUSH", "list", value)
		c.Do("SADD", "set", value)
		keys = append(keys, key)
	}
	return keys
}
