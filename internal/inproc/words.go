package inproc

import (
	"strings"

	"github.com/stretchr/testify/require"
)

// Say sends the words of a command and returns the bytes of its reply.
func (c *Client) Say(words string) string {
	c.tb.Helper()
	return c.Do(strings.Fields(words)...)
}

// Set has commands answered with [OK].
func (c *Client) Set(commands ...string) {
	c.tb.Helper()
	for _, words := range commands {
		require.Equal(c.tb, OK, c.Say(words), words)
	}
}

// As authenticates the client as the user "app", which admin gives these rules.
func (c *Client) As(admin *Client, rules ...string) *Client {
	c.tb.Helper()
	require.Equal(c.tb, OK, admin.Do(append([]string{"ACL", "SETUSER", "app", "reset", "on", ">p"}, rules...)...))
	require.Equal(c.tb, OK, c.Do("AUTH", "app", "p"))
	return c
}

// Field returns a field of a line of CLIENT LIST, such as addr.
func Field(line, name string) string {
	_, rest, _ := strings.Cut(line, " "+name+"=")
	value, _, _ := strings.Cut(rest, " ")
	return value
}
