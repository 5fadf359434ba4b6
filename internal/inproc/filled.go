package inproc

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
)

// ShortValues is the number of values that [Client.FillShort] creates of each kind, and ShortSize
// is their length in bytes. A reply with all values of one kind is longer than a kernel buffers.
const (
	ShortValues = 600
	ShortSize   = 15_000
)

// FillShort creates ShortValues keys with strings, and a hash, a list and a set with as many
// elements each. It returns the keys of the strings.
func (c *Client) FillShort() (keys []string) {
	c.tb.Helper()
	const each = 20
	for from := 0; from < ShortValues; from += each {
		mset, hset, rpush, sadd := []string{"MSET"}, []string{"HSET", "hash"}, []string{"RPUSH", "list"}, []string{"SADD", "set"}
		for i := from; i < from+each; i++ {
			key := fmt.Sprintf("value:%d", i)
			value := fmt.Sprintf("%05d", i) + strings.Repeat("v", ShortSize-5)
			mset, hset, rpush, sadd = append(mset, key, value), append(hset, key, value), append(rpush, value), append(sadd, value)
			keys = append(keys, key)
		}
		for _, words := range [][]string{mset, hset, rpush, sadd} {
			require.NotContains(c.tb, c.Do(words...), "-")
		}
	}
	return keys
}
