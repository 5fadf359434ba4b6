// Package architecture holds the house rules that a machine can check: which
// package may import which, which may read the clock, and which may be large. The rules are
// data with a reason each: [layers], [groups], [externals], [clockFiles] and
// [larger]. [Check] and [CheckBounds] read the source of a module and return every
// violation together with the reason.
//
// They read the files of all platforms, test files included, whatever the platform
// they run on. The picture of the same rules is in ARCHITECTURE.md.
package architecture

import "slices"

// module is the import path of this module, without a final slash.
const module = "github.com/cellserver/cellserver"

// layer says what a package may import of this module and of the standard
// library. Only production files are bound by it: a test may look anywhere.
type layer struct {
	// imports are the packages of this module that may be imported.
	imports []string
	// pure forbids everything of the standard library in impure.
	pure bool
	// why is the sentence shown with a violation.
	why string
}

var families = []string{"limit", "gcra", "slidingwindow", "tokenbucket", "concurrency", "counter"}

// groups are the packages that have commands in them, one concern each. None of them
// knows another, nor who feeds it: so each can be read, tested and left out by itself.
var groups = []string{
	"commands/admin",
	"commands/connection",
	"commands/hashes",
	"commands/keys",
	"commands/limiters",
	"commands/lists",
	"commands/pubsub",
	"commands/scripting",
	"commands/sets",
	"commands/sortedsets",
	"commands/strings",
	"commands/tracking",
	"commands/transactions",
	"commands/monitor",
	"commands/policies",
	"commands/replication",
	"commands/users",
}

// groupParts are the other packages below commands: what a command is, and what
// groups share. They have no command in them.
var groupParts = []string{
	"commands/blocking",
	"commands/command",
	"commands/elements",
	"commands/env",
	"commands/policystore",
	"replication/protocol",
}

// vocabulary are the packages that name what all commands speak of. They know no command.
var vocabulary = []string{"acl", "arg", "budget", "clause", "figure", "glob", "stats", "syntax"}

// groupLayer is the layer of every group that has no line of its own in layers.
var groupLayer = layer{
	imports: slices.Concat(groupParts, vocabulary, []string{"decide", "collection", "longdouble", "policy", "resp", "shared"}, families),
	why:     "a group of commands imports what a command is and what groups share; what it needs of clients is in commands/command, and of the store in commands/env",
}

const groupWhy = "groups of commands never import each other, and neither sessions nor what groups share may know one: what two groups need belongs into commands/command or a package beside it"

// layers is the import direction. A package that is not in it must be added
// with its reason, here and in ARCHITECTURE.md; those below cmd/ may import
// everything and those below internal/ are held by [Check] itself.
var layers = map[string]layer{
	"limit":         {pure: true, why: "limit is the vocabulary that all share, so it builds on none of them"},
	"gcra":          {imports: []string{"limit"}, pure: true, why: pureWhy},
	"slidingwindow": {imports: []string{"limit"}, pure: true, why: pureWhy},
	"tokenbucket":   {imports: []string{"limit"}, pure: true, why: pureWhy},
	"concurrency":   {imports: []string{"limit"}, pure: true, why: pureWhy},
	"counter":       {imports: []string{"limit", "longdouble"}, pure: true, why: pureWhy},
	"longdouble":    {pure: true, why: "a number is read and written in the same way whoever adds to it"},
	"yield":         {why: "whoever works for long lets others run in between: it knows none of them"},
	"shared":        {why: "what a reply and the store have in common is bytes and a count; it knows neither"},
	"collection":    {imports: []string{"shared"}, pure: true, why: "a collection is a value: who may change it when, and where that is kept, is the store's business"},

	"keyspace": {
		imports: append([]string{"decide", "collection", "shared", "keyspace/clock", "entry", "keyspace/dense", "keyspace/object", "keyspace/effect", "keyspace/world", "yield"}, families...),
		why:     "the store calls the algorithms and knows nothing of disks, replies or commands: it declares Journal, and persistence implements it",
	},
	"entry": {
		imports: append([]string{"shared"}, families...),
		why:     "what a key holds is the same to tables, records and files, so it knows none of them",
	},
	"keyspace/dense": {
		imports: []string{"shared", "limit", "entry"},
		why:     "the table stores entries and knows neither locks nor time, nor who looks",
	},
	"keyspace/object": {
		imports: []string{"collection", "shared", "entry"},
		why:     "what the store needs of a collection is the same for all kinds; it knows no key",
	},
	"keyspace/effect": {
		imports: append([]string{"collection", "shared", "entry", "keyspace/object"}, families...),
		why:     "what is written down of changes needs no store: files are read and checked without one",
	},
	"keyspace/world": {
		imports: []string{"limit"},
		why:     "the world lock is a plain lock, and the watermark an instant: neither knows the store",
	},
	"persistence": {
		imports: append([]string{"keyspace", "collection", "shared", "keyspace/clock", "entry", "keyspace/effect"}, families...),
		why:     "files know what is stored, not who asked for it; records refer to long values",
	},
	"rdb": {pure: true, why: "a format of others is bytes: what its keys mean here, and where they go, is decided by who reads or writes it"},
	"replication/redis": {
		imports: []string{"rdb", "keyspace", "keyspace/clock", "keyspace/effect", "entry", "persistence", "collection", "gcra", "limit", "transport", "replication", "replication/protocol", "resp"},
		why:     "a link with a Redis needs its formats and the store: the server says by functions which session runs its commands and how connections are opened",
	},
	"replication": {
		imports: []string{"keyspace", "keyspace/clock", "entry", "persistence", "limit", "transport", "replication/protocol", "resp"},
		why:     "nodes exchange what the log has and what a snapshot has: replication knows no command, no session and no socket of a client",
	},
	"decide": {
		imports: append([]string{"entry"}, families...), pure: true,
		why: "to choose among the algorithms is as pure as they are: who keeps the entries calls it",
	},
	"cluster": {
		imports: append([]string{"decide", "entry", "cluster/engine", "cluster/clock"}, families...),
		why:     "the cluster stands in for the local store, so it knows as little as the store does",
	},
	"cluster/engine": {
		imports: []string{"cluster/clock", "limit", "optionfile"},
		why:     "what talks to the engine moves bytes; what they mean is decided above it",
	},
	"cluster/clock": {
		imports: []string{"limit"},
		why:     "what samples of other clocks are worth depends on nothing but them",
	},

	"remote": {
		imports: []string{"commands/env", "concurrency", "decide", "limit"},
		why:     "a store without keys knows what commands ask of one, and who decides instead",
	},

	"lua/value": {
		why: "numbers and values are what Lua says they are, whoever has them",
	},
	"lua/pattern": {
		imports: []string{"lua/value"},
		why:     "a pattern is text and a budget: it needs no interpreter",
	},
	"lua/compiler": {
		imports: []string{"lua/value", "resp"},
		why:     "a text is read and judged before it runs, so the compiler knows no run",
	},
	"lua/sandbox": {
		imports: []string{"lua/value"},
		why:     "bounds hold for whatever runs, so they know no library and no host",
	},
	"lua/libraries": {
		imports: []string{"lua/value", "lua/pattern", "lua/compiler", "lua/sandbox"},
		why:     "a library reaches its sandbox and nothing else: what leads to the server is redis.call, which is lua's",
	},
	"lua": {
		imports: []string{"lua/value", "lua/compiler", "lua/sandbox", "lua/libraries", "resp", "shared"},
		why:     "a script reaches the server through the Host it is run with, and nothing else",
	},

	"policy/strict": {
		imports: []string{"yield"},
		why:     "YAML that leaves nothing to guess is the same for every format, so it knows none",
	},
	"policy/document": {
		imports: []string{"limit", "policy", "policy/strict", "yield"},
		why:     "a text of policies is read and written the same for commands, files and programs, so it knows none of them",
	},
	"policy/registry": {
		imports: []string{"entry", "limit", "policy", "policy/document", "yield"},
		why:     "the registry has records of policies written and reads them: by whom, and where they are, is told it",
	},
	"policy/policyfile": {
		imports: []string{"optionfile", "policy", "policy/document", "policy/registry"},
		why:     "the file is read here, and put in force by the registry",
	},
	"policy/convert": {
		imports: []string{"policy", "policy/document", "policy/strict"},
		why:     "files of others become a document, and nothing of them reaches the server",
	},

	"resp":      {imports: []string{"shared"}, why: "resp is the protocol's edge; what a command means is above it"},
	"transport": {imports: []string{"shared"}, why: "transport moves bytes; it knows neither RESP nor commands"},
	"arg": {
		imports: []string{"resp"},
		why:     "reading a word is the same for every command, so it knows none",
	},
	"glob": {why: "a pattern and a name are bytes"},
	"clause": {
		imports: append([]string{"arg", "decide", "resp"}, families...),
		why:     "the words of a limit mean the same in every command, so whoever reads them knows no call",
	},
	"acl": {
		imports: []string{"arg", "glob"},
		why:     "what a user may do is rules about names and numbers: it knows no command and no client",
	},
	"stats": {
		imports: []string{"limit", "resp"},
		why:     "counters are added to and read, they call nobody",
	},
	"replication/protocol": {
		imports: []string{"resp", "transport"},
		why:     "requests and replies of replication are types: the commands and replication share them, and neither imports the other",
	},
	"figure": {
		why: "a figure is read by the part that counts it: the registry knows neither these parts nor what shows them",
	},
	"budget": {
		why: "a bound on memory knows neither who asks for it nor for what",
	},
	"keyspace/clock": {
		imports: []string{"limit"},
		why:     "the clock knows nothing of what it is read for",
	},
	"policy": {
		imports: append([]string{"clause", "resp"}, families...),
		why:     "what has been set is data that a goroutine changes and all read: who sets it, where it is kept and what a command does with it is above",
	},
	"commands/command": {
		imports: []string{"resp", "transport", "collection", "shared", "limit", "gcra", "slidingwindow", "tokenbucket", "concurrency", "counter", "longdouble", "decide", "acl", "commands/env", "figure", "arg", "replication/protocol", "stats", "syntax", "budget", "policy"},
		why:     "what a command is and may touch: it knows no command, no session and no store",
	},
	"commands/env": {
		imports: []string{"acl", "replication/protocol", "stats", "collection", "decide", "limit", "policy/registry", "resp", "shared", "transport"},
		why:     "what commands need is declared here and implemented elsewhere: it knows no call, and nobody who implements it",
	},
	"syntax": {
		imports: []string{"resp"},
		why:     "a line that says which arguments there are is text: whose arguments they are is not known",
	},
	"commands/elements": {
		imports: []string{"commands/command", "commands/env", "arg", "glob", "collection", "resp", "shared", "limit"},
		why:     "what collections share in their replies knows no command",
	},
	"commands/blocking": {
		imports: []string{"commands/command", "commands/elements", "commands/env", "arg", "limit", "resp"},
		why:     "who waits for elements waits in the same way whatever they are of: each kind says how it is taken from",
	},
	"commands/policystore": {
		imports: []string{"commands/command", "commands/env", "limit", "policy/registry", "resp"},
		why:     "what joins the registry with the store is the same for commands and for the policy file, so it knows neither",
	},
	"commands/policies": {
		imports: append([]string{"policy/document", "policy/policyfile", "policy/registry"}, groupLayer.imports...),
		why:     "who changes policies does it by the registry, which has the store as an interface",
	},
	"commands/replication": {
		imports: append([]string{"transport"}, groupLayer.imports...),
		why:     "a replica is sent a stream that its transport moves, and this group hands the one to the other",
	},
	"commands/scripting": {
		imports: append([]string{"lua"}, groupLayer.imports...),
		why:     "scripts are run by package lua, and this group alone is what they see of the server",
	},
	"commands": {
		imports: append([]string{"commands/command"}, groups...),
		why:     "commands is the list of what there is: it names the groups and knows nothing of what they do",
	},
	"session": {
		imports: []string{"decide", "acl", "commands/command", "commands/env", "figure", "arg", "stats", "budget", "resp", "transport", "shared", "limit"},
		why:     "a session feeds what bytes come to whatever command they name: it knows what a command is, and no command",
	},
	"admin": {
		imports: []string{"acl"},
		why:     "who may reach the handlers of the admin port is decided here; what they answer is not known",
	},
	"admin/page": {why: "the page is a file: it asks the API for what it shows"},
	"metrics": {
		imports: []string{"figure"},
		why:     "metrics range over the registry of figures: they call nobody",
	},
	"report": {
		imports: []string{"acl", "figure", "stats", "limit"},
		why:     "a report is made of figures that others give it: it knows no session, no store and no port",
	},
	"top": {
		imports: []string{"report"},
		why:     "a terminal shows reports: it asks a server by a function that the program gives it",
	},
	"optionfile": {why: "a file that an option names is bytes here: what is in it is its reader's business"},
	"tlsconfig": {
		imports: []string{"optionfile"},
		why:     "certificates are files and names are text: who speaks TLS with them is nobody's business here",
	},
	"config": {
		imports: []string{"policy", "cluster/engine", "commands", "acl", "commands/env", "stats", "optionfile", "resp", "tlsconfig", "transport"},
		why:     "what an option may be is text; what it does belongs to who reads it, so config knows no server and no store",
	},
	"server": {
		imports: append([]string{"config", "optionfile", "tlsconfig", "keyspace", "remote", "persistence", "cluster", "cluster/engine", "decide", "resp", "transport", "commands", "session", "metrics", "report", "lua", "collection", "shared", "figure", "stats", "keyspace/clock", "commands/command", "commands/env", "acl", "replication/protocol", "replication", "entry", "admin", "admin/page", "replication/redis", "commands/policystore", "policy", "policy/policyfile", "policy/registry"}, families...),
		why:     "server is the assembly: it may import every part, and only cmd/ imports it",
	},

	"examples/cluster": {imports: []string{"examples/demo"}, why: exampleWhy},
	"examples/standby": {imports: []string{"examples/demo"}, why: exampleWhy},
}

const pureWhy = "an algorithm turns a state and an instant into a decision: no clock, no I/O, no lock, no log, nobody to wait for"

const exampleWhy = "a demonstration starts the server as a program, as its readers do: it needs nothing of it"

// impure lists what pure packages may not import, by path or path prefix.
var impure = []string{"net", "os", "log", "sync", "context"}

// external says where a module that is not ours may be imported.
type external struct {
	path string
	// in lists the folders whose production files may import it.
	in []string
	// inTests lets every test file import it.
	inTests bool
	why     string
}

var externals = []external{
	{
		path: "github.com/tidwall/redcon", in: []string{"resp"},
		why: "redcon's reader is not safe on raw input (docs/adr/0001): only resp, behind the frame guard, may use it",
	},
	{
		path: "github.com/yuin/gopher-lua", in: []string{"lua"},
		why: "the interpreter is safe only inside the guard that lua puts around it",
	},
	{
		path: "github.com/tidwall/btree", in: []string{"collection"},
		why: "ordered elements are what collection is for",
	},
	{
		path: "github.com/redis/go-redis", in: []string{"cluster/engine", "cmd", "compat_test", "examples", "internal/storetest"}, inTests: true,
		why: "we are the server; only the cluster, the migration commands, examples and tests talk to one",
	},
	{
		path: "go.yaml.in/yaml", in: []string{"policy/strict"}, inTests: true,
		why: "YAML can do more than it looks like: only policy/strict, which refuses that, reads it",
	},
	{
		path: "charm.land/bubbletea", in: []string{"top", "cmd"},
		why: terminalWhy,
	},
	{
		path: "github.com/charmbracelet/x/ansi", in: []string{"top"},
		why: terminalWhy,
	},
	{
		path: "github.com/prometheus/client_golang", in: []string{"metrics"},
		why: "what is measured is counted by those who do it; only metrics turns that into series",
	},
	{
		path: "gonum.org/v1/plot", in: []string{"internal/loadgen", "cmd"},
		why: measuringWhy,
	},
	{
		path: "github.com/HdrHistogram/hdrhistogram-go", in: []string{"internal/loadgen", "cmd"},
		why: measuringWhy,
	},
	{
		path: "github.com/schollz/progressbar", in: []string{"internal/loadgen", "cmd"},
		why: measuringWhy,
	},
	{
		path: "github.com/stretchr/testify", in: []string{"internal", "compat_test"}, inTests: true,
		why: "an assertion library has no place in the binary",
	},
}

const terminalWhy = "what draws in a terminal is for the program that has one (docs/adr/0014)"

const measuringWhy = "what draws and counts for the load generator has no place in the server"

// clockFiles are the folders and files, by prefix of the path, whose production
// code may read the wall clock: programs and tests, the edge where deadlines of
// sockets are set, the clocks of the stores themselves, and the assembly, which hands a
// stopwatch down.
var clockFiles = []string{"cmd/", "compat_test/", "examples/", "internal/", "transport/", "keyspace/clock", "cluster/timing.go", "server/server.go"}

const clockWhy = "the store owns the clock (docs/adr/0003): take an instant or a clock as a parameter"
