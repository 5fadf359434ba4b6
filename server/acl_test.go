package server_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/server"
)

const (
	noKey     = "-NOPERM No permissions to access a key\r\n"
	noChannel = "-NOPERM No permissions to access a channel\r\n"
)

// noCommand is the error for a command that user may not call.
func noCommand(user, command string) string {
	return "-NOPERM User " + user + " has no permissions to run the '" + command + "' command\r\n"
}

// TestUsersMayDoWhatTheirRulesSay plays calls of a restricted user.
func TestUsersMayDoWhatTheirRulesSay(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin, c := f.dial(), f.dial()
		require.Equal(t, "+OK\r\n", admin.do("ACL", "SETUSER", "app", "on", ">p", "~a*", "%R~in:*", "&news.*",
			"+@string", "-mset", "+cl.throttle", "+@ratelimit", "+rename", "+@scripting", "+@transaction", "+@pubsub", "+client|setname", "+keys", "+flushall"))
		require.Equal(t, "+OK\r\n", c.do("AUTH", "app", "p"))
		for call, want := range map[string]string{
			"SET a1 1":                 "+OK\r\n",
			"GET in:1":                 "$-1\r\n",
			"SET in:1 1":               noKey,
			"GET b":                    noKey,
			"MSET a1 1 a2 2":           noCommand("app", "mset"),
			"MGET a1 b":                noKey,
			"DEL a1":                   noCommand("app", "del"),
			"CONFIG GET x":             noCommand("app", "config|get"),
			"CLIENT SETNAME x":         "+OK\r\n",
			"CLIENT GETNAME":           noCommand("app", "client|getname"),
			"CL.THROTTLE b 1 1 1":      noKey,
			"CL.THROTTLE in:x 1 1 1 0": noKey,
			"RL.INFO in:x":             "$-1\r\n",
			"RL.MULTI 1 a1 TB 1 1 1":   "", // of another type: the call itself fails
			"RL.MULTI 1 a9:x TB 1 1 1": "",
			"RL.MULTI 1 b TB 1 1 1":    noKey,
			"RENAME in:1 a1":           noKey,
			"PUBLISH news.x m":         ":0\r\n",
			"PUBLISH old m":            noChannel,
			"KEYS *":                   noKey,
			"FLUSHALL":                 noKey,
			"EVAL return(1) 1 b":       noKey,
			"EVAL_RO return(1) 1 in:1": ":1\r\n",
			"EVAL return(1) 1 in:1":    noKey,
			"PSUBSCRIBE news.x*":       noChannel,
		} {
			got := c.do(strings.Fields(call)...)
			if want != "" {
				require.Equal(t, want, got, call)
			} else {
				require.NotContains(t, got, "NOPERM", call)
			}
		}
		require.Contains(t, c.do("EVAL", "return redis.call('GET', 'b')", "0"), "-NOPERM ACL failure in script: No permissions to access a key")
		require.Equal(t, "+OK\r\n", admin.do("CONFIG", "SET", "acl-keyspace-needs-allkeys", "no"))
		require.Equal(t, "*1\r\n$2\r\na1\r\n", c.do("KEYS", "a1"))
	})
}

// TestRulesThatChangeUnderATransaction has the words of Redis for what is queued and no
// longer allowed.
func TestRulesThatChangeUnderATransaction(t *testing.T) {
	f := start(t, "auto")
	admin, c := f.dial(), f.dial()
	admin.do("ACL", "SETUSER", "app", "on", ">p", "~*", "+@all")
	c.do("AUTH", "app", "p")
	c.do("MULTI")
	c.do("SET", "a", "1")
	c.do("GET", "b")
	c.do("GET", "a")
	require.Equal(t, "+OK\r\n", admin.do("ACL", "SETUSER", "app", "-set", "resetkeys", "~a"))
	const changed = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: "
	require.Equal(t, "*3\r\n"+changed+"no permission to execute the command or subcommand\r\n"+
		changed+"no permission to touch the specified keys\r\n$-1\r\n", c.do("EXEC"))
	c.do("MULTI")
	require.Equal(t, noCommand("app", "set"), c.do("SET", "a", "1"))
	require.Contains(t, c.do("EXEC"), "-EXECABORT")
	require.Contains(t, admin.do("ACL", "LOG"), "multi")
}

// TestClientsOfUsersThatChange are closed where Redis closes them.
func TestClientsOfUsersThatChange(t *testing.T) {
	f := start(t, "auto")
	admin, gone, off, listener := f.dial(), f.dial(), f.dial(), f.dial()
	for name, c := range map[string]*client{"gone": gone, "off": off, "listener": listener} {
		admin.do("ACL", "SETUSER", name, "on", "nopass", "+@all", "~*", "&news")
		require.Equal(t, "+OK\r\n", c.do("AUTH", name, "x"))
	}
	require.Contains(t, listener.do("SUBSCRIBE", "news"), "subscribe")
	require.Equal(t, ":1\r\n", admin.do("ACL", "DELUSER", "gone", "nobody"))
	gone.expectEnd()
	require.Equal(t, "+OK\r\n", admin.do("ACL", "SETUSER", "off", "off"))
	require.Equal(t, "+PONG\r\n", off.do("PING"), "who is off may go on, and not log in again")
	require.Equal(t, wrongPass, off.do("AUTH", "off", "x"))
	require.Equal(t, "+OK\r\n", admin.do("ACL", "SETUSER", "listener", "-get"))
	require.Contains(t, admin.do("CLIENT", "LIST"), "user=listener")
	require.Equal(t, "+OK\r\n", admin.do("ACL", "SETUSER", "listener", "resetchannels"))
	listener.expectEnd()
	require.Equal(t, "-ERR The 'default' user cannot be removed\r\n", admin.do("ACL", "DELUSER", "default"))
}

// TestUserFiles: a file is put in force whole or not at all, and is written as it is read.
func TestUserFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "users.acl")
	write := func(lines ...string) {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	}
	write("user default on nopass +@all ~* &*", "user app on >p +get ~*")
	f := start(t, "auto", "--aclfile", path, "--requirepass", "ignored")
	admin, c := f.dial(), f.dial()
	require.Equal(t, "+OK\r\n", c.do("AUTH", "app", "p"))
	write("user default on nopass +@all ~* &*", "user app on >p +foo", "user b (")
	require.Equal(t, "-ERR "+path+":2: Error in applying operation '+foo': Unknown command or category name in ACL. "+path+":3: Unmatched parenthesis in selector definition. "+
		"WARNING: ACL errors detected, no change to the previously active ACL rules was performed\r\n", admin.do("ACL", "LOAD"))
	require.Equal(t, "$-1\r\n", c.do("GET", "a"))
	write("user default on nopass +@all ~* &*", "user app on >p +set ~*")
	require.Equal(t, "+OK\r\n", admin.do("ACL", "LOAD"))
	c.expectEnd()
	require.Equal(t, "+OK\r\n", admin.do("ACL", "SETUSER", "new", "on", ">q"))
	require.Equal(t, "+OK\r\n", admin.do("ACL", "SAVE"))
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(saved), "\n"))
	require.Contains(t, string(saved), "user new on sanitize-payload #")
	require.Equal(t, "+OK\r\n", admin.do("ACL", "LOAD"), "what was saved changes nothing")
	require.Equal(t, "+PONG\r\n", admin.do("PING"))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	require.Contains(t, start(t, "auto").dial().do("ACL", "LOAD"), "-ERR This Redis instance is not configured to use an ACL file.")
	for content, why := range map[string]string{
		"user app on +foo": ":1: Error in applying operation '+foo': Unknown command or category name in ACL",
		"usr app":          ":1 should start with user keyword",
	} {
		write(content)
		_, err = newServer(t, "--aclfile", path)
		require.ErrorContains(t, err, path+why)
	}
	write("user default on nopass +@all ~* &*")
	_, err = newServer(t, "--aclfile", path, "--bind", "0.0.0.0", "--port", freeport.Choose())
	require.ErrorContains(t, err, "lets other machines in without a password")
	_, err = newServer(t, "--aclfile", path+".missing")
	require.ErrorContains(t, err, "reading the users")
}

// TestFilesOfUsersThatLetNobodyInAreTaken: a user default who cannot log in, or may not call
// anything, opens no address, whatever the password. The log says if nobody is left who can.
func TestFilesOfUsersThatLetNobodyInAreTaken(t *testing.T) {
	const app = "user app on >p ~* +@all\n"
	for users, want := range map[string]struct{ taken, warned bool }{
		"user default off nopass":                    {true, true},
		"user default off":                           {true, true},
		"user default off nopass ~* &* +@all":        {true, true},
		"user default on nopass -@all":               {true, true},
		"user default on nopass +@all -@all":         {true, true},
		"user default on ~* +@all":                   {true, true},
		"user default off nopass\nuser app on +@all": {true, true},
		"user default off nopass\n" + app:            {true, false},
		"user default on nopass -@all\n" + app:       {true, false},
		"user default on >secret ~* &* +@all":        {true, false},
		"user default on nopass +ping":               {false, false},
		"user default on nopass -@all +select|0":     {false, false},
		"user default on nopass -@all (+get ~a)":     {false, false},
		"user default on nopass ~* &* +@all":         {false, false},
		"user app on >p ~* +@all":                    {false, false}, // default is as without a file
	} {
		path := filepath.Join(t.TempDir(), "users.acl")
		require.NoError(t, os.WriteFile(path, []byte(users), 0o600))
		conf := writeConfig(t, users)
		for _, args := range [][]string{{"--aclfile", path}, {conf}} {
			args = append(args, "--bind", "0.0.0.0", "--port", freeport.Choose())
			c, err := config.Load(args, nil)
			require.NoError(t, err)
			if err = server.Check(c); !want.taken {
				require.ErrorContains(t, err, "lets other machines in without a password", users)
				continue
			}
			require.NoError(t, err, users)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			f := startOn(t, c, l)
			require.Equal(t, want.warned, strings.Contains(f.log.String(), "no user can log in and run commands"), users)
		}
	}
}

// TestLongFilesOfFaultsEndInHowManyMoreThereAre: the reply of ACL LOAD is one line, whole, and in
// the shape of Redis'.
func TestLongFilesOfFaultsEndInHowManyMoreThereAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.acl")
	require.NoError(t, os.WriteFile(path, []byte(goodUsers), 0o600))
	c := start(t, "auto", "--aclfile", path).dial()
	const ending = "WARNING: ACL errors detected, no change to the previously active ACL rules was performed\r\n"
	for _, n := range []int{2, 90, 100, 101, 2000} {
		require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("user\n", n)), 0o600))
		for call, separator := range map[string]string{"ACL LOAD": ". ", "CONFIG RELOAD": "; "} {
			got := c.do(strings.Fields(call)...)
			require.Less(t, len(got), 10<<10)
			if call == "ACL LOAD" {
				require.True(t, strings.HasSuffix(got, separator+ending), "%q", got)
			}
			told, more := strings.Count(got, " should start with user keyword followed by the username"), 0
			if at := strings.Index(got, " more fault"); at >= 0 {
				_, err := fmt.Sscan(got[strings.LastIndexByte(got[:at], ' ')+1:at], &more)
				require.NoError(t, err)
			}
			require.Equal(t, n, told+more, "%q", got)
		}
	}
	require.NoError(t, os.WriteFile(path, []byte("user a\x01\x1b on\nuser a\x01\x1b on\nuser "+strings.Repeat("b", 1<<20)+" on on\nuser "+strings.Repeat("b", 1<<20)+" on\n"), 0o600))
	require.Equal(t, "-ERR WARNING: Duplicate user 'a  ' found on line 2. WARNING: Duplicate user '"+strings.Repeat("b", 128)+"' found on line 4. "+ending, c.do("ACL", "LOAD"))
}

// TestDryrunTellsWhatIsNotAllowed in the words of Redis 7.2 and Valkey 8.
func TestDryrunTellsWhatIsNotAllowed(t *testing.T) {
	c := start(t, "auto").dial()
	require.Equal(t, okReply, c.do("ACL", "SETUSER", "app", "on", "~a*", "%R~r*", "&ch*", "+@string", "+config|get", "+select|0", "+publish", "+rename", "+eval", "+scan", "+keys", "+flushall"))
	for call, want := range map[string]string{
		"app get a":              okReply,
		"app get b":              bulk("User app has no permissions to access the 'b' key"),
		"app set r1 x":           bulk("User app has no permissions to access the 'r1' key"),
		"app mget a1 b1":         bulk("User app has no permissions to access the 'b1' key"),
		"app rename r1 a1":       bulk("User app has no permissions to access the 'r1' key"),
		"app del a":              bulk("User app has no permissions to run the 'del' command"),
		"app CONFIG SET a b":     bulk("User app has no permissions to run the 'config|set' command"),
		"app select 0":           okReply,
		"app select 1":           bulk("User app has no permissions to run the 'select' command"),
		"app publish foo m":      bulk("User app has no permissions to access the 'foo' channel"),
		"app eval return(1) 1 b": bulk("User app has no permissions to access the 'b' key"),
		"app scan 0":             bulk("User app has no permissions to access all keys, which the 'scan' command needs"),
		"app keys *":             bulk("User app has no permissions to access all keys, which the 'keys' command needs"),
		"app flushall":           bulk("User app has no permissions to access all keys, which the 'flushall' command needs"),
		"default flushall":       okReply,
		"nobody get a":           "-ERR User 'nobody' not found\r\n",
		"app nosuch a":           "-ERR Command 'nosuch' not found\r\n",
		"app get a b c":          "-ERR wrong number of arguments for 'get' command\r\n",
	} {
		require.Equal(t, want, c.do(append([]string{"ACL", "DRYRUN"}, strings.Fields(call)...)...), call)
	}
}

// TestUserLines: the configuration may define users.
func TestUserLines(t *testing.T) {
	c := start(t, "auto", "--user", "app", "on", ">p", "+get", "~a*", "--user", "default", "on", ">secret", "+@all", "~*", "&*").dial()
	require.Equal(t, noAuth, c.do("GET", "a"))
	require.Equal(t, "+OK\r\n", c.do("AUTH", "secret"))
	require.Contains(t, c.do("ACL", "LIST"), "user app on sanitize-payload #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~a* resetchannels -@all +get")
	path := writeConfig(t, "user app +foo\nuser app on")
	_, err := newServer(t, path)
	require.EqualError(t, err, path+":1: user app: Unknown command or category name in ACL\n"+path+":2: user app: Duplicate user found. A user can only be defined once in config files")
	_, err = newServer(t, writeConfig(t, "user app on\naclfile x.acl"))
	require.ErrorContains(t, err, "exclude each other")
	_, err = config.Load([]string{writeConfig(t, "user")}, nil)
	require.ErrorContains(t, err, "user")
}
