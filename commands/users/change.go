package users

import (
	"strings"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// setuser is the Run function of ACL SETUSER. When it replies, the new rules apply to all clients
// of the user.
func setuser(c *command.Call) {
	words := make([]string, len(c.Args)-3)
	for i, arg := range c.Args[3:] {
		words[i] = string(arg)
	}
	u, before, err := c.Server.Users.Set(string(c.Args[2]), words)
	if err != nil {
		c.Fail(resp.Error("ERR " + oneLine(err)))
		return
	}
	if before != nil {
		c.Server.RulesChanged(u, before)
	}
	c.OK()
}

// oneLine returns the text of err as one line of at most 4*[command.MaxEcho] bytes. It replaces
// control characters by spaces, because the text may quote input of the client.
func oneLine(err error) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, string(command.Echo([]byte(err.Error()), 4*command.MaxEcho)))
}

// deluser is the Run function of ACL DELUSER. It also closes the clients of the deleted users, and
// replies with their number. If the user default is among the names, it fails and deletes nothing.
func deluser(c *command.Call) {
	names := make([]string, 0, len(c.Args)-2)
	for _, arg := range c.Args[2:] {
		if string(arg) == acl.DefaultUser {
			c.Fail("ERR The 'default' user cannot be removed")
			return
		}
		names = append(names, string(arg))
	}
	gone := c.Server.Users.Delete(names)
	closeClients(c, gone)
	c.W.Int(int64(len(gone)))
}

// closeClients closes all clients of users. If the client of c is among them, it is closed after
// its reply.
func closeClients(c *command.Call, users []*acl.User) {
	if len(users) == 0 {
		return
	}
	of := make(map[*acl.User]bool, len(users))
	for _, u := range users {
		of[u] = true
	}
	for _, cl := range c.Server.Host.Registry.Clients() {
		switch {
		case !of[cl.User.Load()]:
		case cl.ID == c.Client.ID:
			c.Client.Closing = true
		default:
			cl.Kill()
		}
	}
}

const errNoFile resp.Error = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration."

// load is the Run function of ACL LOAD. It also closes the clients of users that were deleted or
// whose permissions have changed.
func load(c *command.Call) {
	file := c.Server.Options.UserFile
	if file == nil {
		c.Fail(errNoFile)
		return
	}
	var changed []*acl.User
	var err error
	c.Server.Host.Work.Outside(c, func() { changed, err = file.Load(c.Server.Users) })
	if err != nil {
		c.Server.Log.Warn("the users were not loaded", "error", err)
		c.Fail(resp.Error("ERR " + err.Error())) // the error text is one line of limited length
		return
	}
	closeClients(c, changed)
	c.OK()
}

// save is the Run function of ACL SAVE. It writes the ACL file in the background. A failure is
// logged, and the reply is an error without the reason.
func save(c *command.Call) {
	file := c.Server.Options.UserFile
	if file == nil {
		c.Fail(errNoFile)
		return
	}
	var err error
	c.Server.Host.Work.Outside(c, func() { err = file.Save(c.Server.Users) })
	if err != nil {
		c.Server.Log.Warn("the users cannot be saved", "error", err)
		c.Fail("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
		return
	}
	c.OK()
}
