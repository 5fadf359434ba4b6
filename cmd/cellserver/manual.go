package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/config"
)

const doctorUsage = "usage: cellserver doctor redis://[user:password@]host:port [--sample n] [--timeout d]"

const pingUsage = "usage: cellserver ping [ADDRESS] [-h host] [-p port] [--config file] [--tls] [--timeout d]"

// connectionManual describes the options of a connection, one per line.
const connectionManual = `  -h host           the server, instead of ADDRESS (127.0.0.1)
  -p port           its port (6379)
  --user name       the user (default), with its password from REDISCLI_AUTH
  --askpass         ask for the password
  --tls             encrypt, as rediss:// does
  --insecure        do not check the certificate of the server
  --cacert file     the authority of the server's certificate, instead of those of this machine
  --sni name        the name that the server's certificate has to have
  --cert file       the certificate of this client, for a server that wants one
  --key file        the key of that certificate
`

const completionUsage = "usage: cellserver completion bash|zsh|fish"

// migrationManual describes the options of import and export.
const migrationManual = `  --match pattern   only keys that match this pattern
  --db n            only this database
  --dry-run         only say what would be done
`

// manual describes for each tool its usage and its effect.
var manual = map[string]string{
	"check-aof": `usage: cellserver check-aof DIR [--fix]

Checks the files of a stopped server. DIR is dir/appenddirname.
  --fix   cut the incomplete end that a crash leaves
`,
	"restore": `usage: cellserver restore BACKUP DIR

Makes the files of a stopped server, DIR, of a backup, which stays as it is. DIR is
dir/appenddirname, and may not exist yet. Its state is a data set of its own: replicas with newer
state do not follow it, and it follows none of them, until you say which state is to stay.
`,
	"check-config": checkConfigUsage + `

Says whether a server would start with a configuration, and ends with status 0 if so. It tells
all faults, with the files and lines that they are in, those of users and of other files that
the configuration names included. The arguments are those of the server, "-" included, and so
is the environment.
`,
	"dump": `usage: cellserver dump DIR

Prints the files of a stopped server as JSON, one line for each entry or effect, with keys
and values. DIR is dir/appenddirname.
`,
	serviceTool: `usage: cellserver ratelimit [--name value ...]

Starts a server in the place of envoyproxy/ratelimit: its environment variables become options.
gRPC is at GRPC_PORT (8081), HTTP at PORT (8080), and there is no port for Redis clients. The
arguments are options of the server, such as --unixsocket PATH, and have precedence, as have
variables CELLSERVER_<NAME>. One line of the log names variables that have no effect. See
docs/ratelimit-image.md.
`,
	"import": `usage: cellserver import ADDRESS DIR [--match pattern] [--db n] [--dry-run]

Copies the keys of redis-cell from a running Redis or Valkey into DIR, the
dir/appenddirname of a stopped server. It counts and skips all other keys. ADDRESS is ` + addressForms + `.
` + migrationManual,
	"export": `usage: cellserver export ADDRESS DIR [--match pattern] [--db n] [--dry-run]

Copies the keys of CL.THROTTLE from DIR back to a running Redis with redis-cell.
` + migrationManual,
	"copy": `usage: cellserver copy DIR ADDRESS, or back: cellserver copy ADDRESS DIR
         [--match pattern] [--db n] [--store-prefix cs:] [--replace] [--without-policies] [--dry-run]

Copies the states of all limiters, and the policies, from DIR, the dir/appenddirname of a
stopped server, into the store at ADDRESS, or back. They keep their instants. What is newer on
the other side stays. Policies that differ there are an error before anything is copied. Other
keys are counted and skipped. ADDRESS is that of --store: valkey://host:port, several hosts
with commas, valkeys:// for TLS.
  --match pattern      only keys that match this pattern
  --db n               the database of DIR (0); a store has one
  --store-prefix text  what stands before every key in the store (cs:)
  --replace            overwrite what is newer, and policies that differ, too
  --without-policies   copy no policies, only states
  --dry-run            only say what would be done
`,
	"completion": completionUsage + `

Prints a script that completes command lines. bash and fish read it with source; zsh loads
it from a file _cellserver in a folder of fpath.
`,
	"ping": pingUsage + `

Says whether a server answers, and ends with status 0 if so: for health checks. Without
ADDRESS it is the server that the environment configures, on this machine: CELLSERVER_PORT or
CELLSERVER_UNIXSOCKET, CELLSERVER_REQUIREPASS, and CELLSERVER_TLS_PORT if there is nothing
else. With --config it is that of a file, and of the environment. Over TLS it then shows the
server's own certificate, and checks none without --cacert, since that names other addresses.
A server that asks for a password, runs a script or cannot write works, and one that loads its
state does not yet. ADDRESS is ` + addressForms + `.
` + connectionManual + `  --config file     the file of the server, instead of an address
  --timeout d       fail after this time: seconds, or a time such as 500ms (2s)
`,
	"man": `usage: cellserver man

Prints the man page cellserver(1), which man reads from a file: cellserver man | man -l -
`,
	"top": topUsage + `

Shows how a running server is: a verdict, groups, keys and changes, as the page of the admin
port does. It sends RL.REPORT and nothing else. The password is asked for with --askpass, or
read from REDISCLI_AUTH. ADDRESS is ` + addressForms + `.
` + connectionManual + `  --interval d      how often it asks: seconds, or a time such as 500ms (1s)
  --once            print one look as text and leave; so it does without a terminal.
                    It is as wide as COLUMNS says (120)
`,
	"policy": `usage: cellserver policy check FILE
       cellserver policy diff FILE [ADDRESS] [-h host] [-p port] [--user name] [--askpass] [--tls]
       cellserver policy from-envoy FILE [FILE ...]
       cellserver policy from-limitador FILE [FILE ...]

check reads a file of policies, and prints every fault with its line. It ends with status 0 if
the file is good.

diff prints what would change on a running server if its policies were those of the file, and
how many of its keys each change concerns. It changes nothing. It sends RL.POLICY DUMP FILE and
SCAN. It ends with status 0 if there is no change, 1 if there are changes, and 2 after an
error. ADDRESS is ` + addressForms + `,
and may end in the number of a database.

from-envoy and from-limitador print a file of policies that is made of the files of
envoyproxy/ratelimit or Limitador. Comments in it say how the policies are called, and what is
not as it was. FILE may be - for the standard input.
` + connectionManual,
	"doctor": doctorUsage + `

Examines a running Redis or Valkey and says what moves to cellserver, what does not, and
what to do. It reads INFO, CONFIG GET, the commands that were called, modules, and a sample
of the keys. It changes nothing on the server, and uses one connection half of the time.
ADDRESS is ` + addressForms + `.
  --sample n    examine this many keys (10000)
  --timeout d   stop after this time: seconds, or a time such as 500ms (30s)
`,
}

// unknownOption returns an error for the first option that a tool does not know, nil if there is
// none.
func unknownOption(tool string, given []string, known ...string) error {
	for _, o := range given {
		if !slices.Contains(known, o) {
			usage, _, _ := strings.Cut(manual[tool], "\n")
			return fmt.Errorf("%s: unknown option %q%s\n%s", tool, o, config.DidYouMean(o, known), usage)
		}
	}
	return nil
}
