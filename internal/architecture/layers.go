// Package architecture checks the rules of the code base: imports, clocks, files, and the sizes of
// packages. The rules are data, and each has a reason: [layers], [groups], [externals],
// [clockFiles], [filePlaces] and [larger]. [Check] and [CheckBounds] read the source of a module
// and return every violation with the reason of its rule. [Pages] generates two pages from the
// imports and the package comments: the picture in ARCHITECTURE.md, and docs/packages.md.
//
// The functions read the files of all platforms, with tests, on every platform. They compile
// nothing. Package comments, in a folder of its own beside this one, checks the names in comments.
package architecture

import "slices"

// module is the import path of this module, without a slash at the end.
const module = "github.com/cellserver/cellserver"

// layer has the rule for the imports of a package. The rule applies to production files; tests may
// import any package.
type layer struct {
	// imports are the packages of this module that the package may import.
	imports []string
	// pure says that the package must not import the packages of the standard library that are
	// listed in impure.
	pure bool
	// why is the reason, which a violation shows.
	why string
}

// families are the packages that decide, together with the packages limit, idempotency and
// reservation, which their callers also need.
var families = []string{"limit", "idempotency", "reservation", "gcra", "slidingwindow", "tokenbucket", "concurrency", "counter", "ban"}

// groups are the packages with commands, each for one concern. A group imports neither another
// group nor session, so each group can be read, tested and left out on its own.
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

// groupParts are the packages that groups share: the definition of a command and common code. They
// contain no command.
var groupParts = []string{
	"command",
	"command/policystore",
	"commands/internal/blocking",
	"commands/internal/elements",
	"env",
	"replication/protocol",
}

// vocabulary are the packages with terms that all commands use. They do not know any command.
var vocabulary = []string{"acl", "arg", "budget", "calendar", "clause", "figure", "glob", "stats", "syntax"}

// groupLayer is the layer of each group that has no entry in layers.
var groupLayer = layer{
	imports: slices.Concat(groupParts, vocabulary, []string{"decide", "collection", "longdouble", "policy", "ratelimit", "ratelimit/hotkeys", "resp", "shared"}, families),
	why:     "a group imports command and what groups share; clients are in command, and the interface to the store in env",
}

const groupWhy = "groups of commands never import each other, and neither sessions nor the packages that groups share may import one: put what two groups need into command or a package beside it"

// layers has the layer of each package, and with it the import direction. A new package needs an
// entry with a reason. Packages below cmd/ and internal/ need none: they may import any package,
// and [Check] keeps production code from importing those below internal/.
var layers = map[string]layer{
	"limit":         {pure: true, why: "limit has the types that all packages share, so it imports none of them"},
	"gcra":          {imports: []string{"limit"}, pure: true, why: pureWhy},
	"calendar":      {imports: []string{"limit"}, pure: true, why: "windows that follow a calendar are computed from data that is part of the program, so that each server computes the same"},
	"slidingwindow": {imports: []string{"limit", "calendar"}, pure: true, why: pureWhy},
	"tokenbucket":   {imports: []string{"limit"}, pure: true, why: pureWhy},
	"concurrency":   {imports: []string{"limit"}, pure: true, why: pureWhy},
	"ban":           {imports: []string{"limit"}, pure: true, why: pureWhy},
	"counter":       {imports: []string{"limit", "longdouble"}, pure: true, why: pureWhy},
	"idempotency":   {imports: []string{"limit"}, pure: true, why: pureWhy},
	"reservation":   {imports: []string{"limit", "idempotency"}, pure: true, why: pureWhy},
	"longdouble":    {pure: true, why: "a number is read and written in one way for all callers, so the package imports none of them"},
	"yield":         {why: "long work of any package calls yield, so yield imports none of them"},
	"shared":        {why: "replies and the store share bytes and a reference count; the package imports neither"},
	"collection":    {imports: []string{"shared"}, pure: true, why: "a collection is a value: the store locks it and keeps it"},

	"keyspace": {
		imports: append([]string{"decide", "collection", "shared", "keyspace/clock", "entry", "keyspace/dense", "keyspace/object", "keyspace/effect", "keyspace/waiting", "keyspace/world", "yield"}, families...),
		why:     "the store calls the algorithms and knows no disk, reply or command: it declares Journal, and persistence implements it",
	},
	"entry": {
		imports: append([]string{"shared"}, families...),
		why:     "tables, records and files hold the same entries, so entry imports none of them",
	},
	"keyspace/dense": {
		imports: []string{"shared", "limit", "entry"},
		why:     "the table stores entries; the store above it has the locks and the clock",
	},
	"keyspace/object": {
		imports: []string{"collection", "shared", "entry"},
		why:     "the store uses all kinds of collections in one way; object knows no key",
	},
	"keyspace/effect": {
		imports: append([]string{"collection", "shared", "entry", "keyspace/object"}, families...),
		why:     "records of changes are read and checked without a store",
	},
	"keyspace/waiting": {
		imports: []string{"entry"},
		why:     "queues of clients are data: the store, which has the locks, says when a client may get something",
	},
	"keyspace/world": {
		imports: []string{"limit"},
		why:     "the world lock is a lock and the watermark an instant: both work without the store",
	},
	"persistence": {
		imports: append([]string{"keyspace", "collection", "shared", "keyspace/clock", "entry", "keyspace/effect"}, families...),
		why:     "files have what is stored, not the commands that stored it; records refer to long values",
	},
	"persistence/manager": {
		imports: []string{"persistence", "keyspace", "keyspace/clock", "env", "limit", "replication", "resp", "shared", "transport"},
		why:     "the manager decides when files are read and written: it gets the settings, the keyspace and replication as interfaces, and knows no session",
	},
	"rdb": {pure: true, why: "RDB is a format of bytes: the callers decide what its keys mean here and where they go"},
	"replication/redis": {
		imports: []string{"rdb", "keyspace", "keyspace/clock", "keyspace/effect", "entry", "persistence", "collection", "gcra", "limit", "transport", "replication", "replication/protocol", "resp"},
		why:     "a link with a Redis needs its formats and the store: the server says by functions which session runs its commands and how connections are opened",
	},
	"replication": {
		imports: []string{"calendar", "keyspace", "keyspace/clock", "entry", "persistence", "limit", "transport", "replication/protocol", "resp"},
		why:     "nodes exchange records of the log and blocks of a snapshot: replication knows no command, no session and no client's socket",
	},
	"decide": {
		imports: append([]string{"entry"}, families...), pure: true,
		why: "decide chooses an algorithm and is as pure as they are: the stores, which keep the entries, call it",
	},
	"remote": {
		imports: append([]string{"decide", "entry", "remote/engine", "remote/clock", "remote/states"}, families...),
		why:     "remote takes the place of the keyspace, so it imports no more than the keyspace does",
	},
	"remote/states": {
		imports: append([]string{"decide", "entry"}, families...), pure: true,
		why: "what the bytes of a key mean does not depend on how they come to and from an engine",
	},
	"remote/engine": {
		imports: []string{"remote/clock", "limit", "optionfile"},
		why:     "the engine moves bytes to and from a Redis; remote decides what they mean",
	},
	"remote/records": {
		imports: []string{"decide", "entry", "limit", "policy/registry", "remote/engine"},
		why:     "the registry decides what a record means and the engine sends scripts: records has the scripts, and knows no policy",
	},
	"remote/servers": {
		imports: []string{"decide", "limit", "remote/records"},
		why:     "servers know of each other by records beside those of policies, in their slot and by scripts that the same engine runs",
	},
	"remote/clock": {
		imports: []string{"limit"},
		why:     "the shared clock is computed from samples of other clocks alone",
	},

	"ratelimit": {
		imports: append([]string{"clause", "decide", "policy", "ratelimit/hotkeys"}, families...),
		why:     "every front decides by it, so it knows no protocol, no command and no store: callers pass a store",
	},
	"rls": {
		imports: []string{"limit", "policy", "policy/strict", "rls/rulefile"}, pure: true,
		why: "what a request charges and what its answer is do not depend on a protocol, a store or a clock: fronts pass the decisions",
	},
	"rls/messages": {why: "messages knows the messages of the service by their descriptions, and no rule"},
	"rls/wire": {
		imports: []string{"rls"}, pure: true,
		why: "bytes become a request and an answer becomes bytes, for every front that gets messages",
	},
	"rls/ruledir": {
		imports: []string{"optionfile", "rls/rulefile"},
		why:     "ruledir finds and reads files, and knows no rule: the caller loads them",
	},
	"rls/rulefile": {
		imports: []string{"policy/strict"}, pure: true,
		why: "the files of ratelimit are text: the service and the conversion read them in one way, so rulefile imports neither",
	},
	"limitador": {
		imports: []string{"limit", "limitador/cel", "limitador/limitfile", "policy", "policy/strict", "rls", "rls/rulefile", "slidingwindow"}, pure: true,
		why: "what a request of Limitador charges and what its answer is do not depend on a protocol, a store or a clock, as in rls",
	},
	"limitador/limitfile": {
		imports: []string{"policy/strict"}, pure: true,
		why: "limits files are text: the service and the conversion read them in one way, so limitfile imports neither",
	},
	"limitador/cel": {
		imports: []string{"rls"}, pure: true,
		why: "an expression is about the descriptors of a request alone: it knows no limit of a file and no policy",
	},
	"ratelimit/hotkeys": {
		imports: []string{"decide", "limit", "policy", "reservation", "stats"},
		why:     "the statistics of keys are those of all fronts: a front describes its calls by an interface",
	},

	"remote/adapter": {
		imports: []string{"env", "concurrency", "decide", "limit"},
		why:     "the adapter has the interface that commands need, as local has it for the keyspace, and submits all asks to a remote store",
	},

	"local": {
		imports: []string{"env", "keyspace", "keyspace/waiting", "entry", "decide", "limit"},
		why:     "local connects the interface that commands need with the keyspace, and neither imports the other",
	},

	"lua/value": {
		why: "the definition of Lua says what numbers and values are, so the package needs no other",
	},
	"lua/pattern": {
		imports: []string{"lua/value"},
		why:     "a pattern is text and a budget: it needs no interpreter",
	},
	"lua/compiler": {
		imports: []string{"lua/value", "resp"},
		why:     "a script is read and checked before it runs, so the compiler knows no execution",
	},
	"lua/sandbox": {
		imports: []string{"lua/value"},
		why:     "the bounds hold for all scripts, so the sandbox knows no library and no host",
	},
	"lua/libraries": {
		imports: []string{"lua/value", "lua/pattern", "lua/compiler", "lua/sandbox"},
		why:     "a library reaches its sandbox and nothing else: only redis.call, which is in lua, leads to the server",
	},
	"lua": {
		imports: []string{"lua/value", "lua/compiler", "lua/sandbox", "lua/libraries", "resp", "shared"},
		why:     "a script reaches the server through the Host it is run with, and nothing else",
	},

	"policy/strict": {
		imports: []string{"yield"},
		why:     "the rules for YAML are the same for every format, so strict imports none",
	},
	"policy/document": {
		imports: []string{"limit", "policy", "policy/strict", "yield"},
		why:     "commands, files and programs read and write policies in one way, so document imports none of them",
	},
	"policy/registry": {
		imports: []string{"entry", "limit", "limitador", "policy", "policy/document", "rls", "yield"},
		why:     "the registry reads records of policies and has them written: the caller passes the store and the author",
	},
	"policy/policyfile": {
		imports: []string{"limit", "optionfile", "policy", "policy/document", "policy/registry"},
		why:     "policyfile reads the file, and the registry puts it in force",
	},
	"policy/convert": {
		imports: []string{"limitador/limitfile", "policy", "policy/document", "policy/strict", "rls/rulefile"},
		why:     "files of other rate limiters become a document, and nothing else of them reaches the server",
	},

	"resp": {imports: []string{"shared"}, why: "resp is the edge of the protocol; the packages above it decide what a command means"},
	"transport": {
		imports: []string{"shared", "transport/internal/buffer"},
		why:     "transport moves bytes; it knows neither RESP nor commands",
	},
	"transport/epoll": {
		imports: []string{"shared", "transport", "transport/internal/base", "transport/internal/buffer"},
		why:     "a transport implements the interface, and knows no other transport",
	},
	"transport/direct": {
		imports: []string{"shared", "transport", "transport/internal/base"},
		why:     "a transport implements the interface, and knows no other transport",
	},
	"transport/goroutine": {
		imports: []string{"shared", "transport", "transport/internal/base", "transport/internal/buffer"},
		why:     "a transport implements the interface, and knows no other transport",
	},
	"transport/internal/base": {
		imports: []string{"shared", "transport", "transport/internal/buffer"},
		why:     "the parts that the transports share know none of them",
	},
	"transport/internal/buffer": {why: "a buffer knows neither the transport nor the connection that borrows it"},
	"transport/internal/transporttest": {
		imports: []string{"shared", "transport", "transport/internal/base"},
		why:     "the tests of all transports use it, so it knows none of them",
	},
	"arg": {
		imports: []string{"resp"},
		why:     "all commands read an argument in one way, so arg imports none",
	},
	"glob": {why: "a pattern and a name are bytes, so glob needs no other package"},
	"clause": {
		imports: append([]string{"arg", "calendar", "decide", "resp"}, families...),
		why:     "the words of a limit mean the same in every command, so clause knows no call",
	},
	"acl": {
		imports: []string{"arg", "glob"},
		why:     "the rules of a user are about names and numbers: acl knows no command and no client",
	},
	"acl/userfile": {
		imports: []string{"acl", "optionfile"},
		why:     "a file of users is text: userfile reads it, and the caller puts the users in force",
	},
	"stats": {
		imports: []string{"limit", "resp"},
		why:     "counters are added to and read: they call no other part",
	},
	"replication/protocol": {
		imports: []string{"resp", "transport"},
		why:     "requests and replies of replication are types: the commands and replication share them, and neither imports the other",
	},
	"figure": {
		why: "a part registers functions that read its figures: the registry imports neither the parts nor the pages that show them",
	},
	"budget": {
		why: "a bound on memory is a number: it needs to know neither the callers nor their reasons",
	},
	"keyspace/clock": {
		imports: []string{"limit"},
		why:     "all parts read the clock, so it imports none of them",
	},
	"policy": {
		imports: append([]string{"arg", "clause", "resp"}, families...),
		why:     "policies are data: the packages above them change, store and apply them",
	},
	"command": {
		imports: []string{"resp", "transport", "collection", "shared", "limit", "gcra", "slidingwindow", "tokenbucket", "concurrency", "counter", "longdouble", "decide", "reservation", "acl", "env", "figure", "arg", "replication/protocol", "stats", "syntax", "budget"},
		why:     "command declares what a command is and may use: it knows no command, no session and no store",
	},
	"env": {
		imports: []string{"acl", "replication/protocol", "stats", "collection", "decide", "limit", "policy/registry", "resp", "shared", "transport"},
		why:     "env declares the interfaces that commands need: it knows no call and no implementation",
	},
	"syntax": {
		imports: []string{"resp"},
		why:     "the syntax of a command is text: the package knows no command",
	},
	"commands/internal/elements": {
		imports: []string{"command", "arg", "glob", "collection", "resp", "shared", "limit"},
		why:     "groups share the way in which elements are written: elements knows no command",
	},
	"commands/internal/blocking": {
		imports: []string{"command", "commands/internal/elements", "env", "arg", "limit", "resp"},
		why:     "blocked clients wait for all kinds of elements in one way: each group says how an element is taken",
	},
	"command/policystore": {
		imports: []string{"command", "env", "limit", "policy/registry", "resp"},
		why:     "commands and the policy file join the registry with the store in one way, so policystore imports neither",
	},
	"commands/policies": {
		imports: append([]string{"policy/document", "policy/policyfile", "policy/registry", "limitador", "rls"}, groupLayer.imports...),
		why:     "the commands change policies through the registry, which has the store as an interface, and show the rules that it has",
	},
	"commands/replication": {
		imports: append([]string{"transport"}, groupLayer.imports...),
		why:     "the transport moves the stream to a replica, and this group connects the two",
	},
	"commands/scripting": {
		imports: append([]string{"lua"}, groupLayer.imports...),
		why:     "package lua runs scripts, and they see of the server only this group",
	},
	"commands": {
		imports: append([]string{"command"}, groups...),
		why:     "commands is the list of the groups: it knows none of their commands",
	},
	"session": {
		imports: []string{"decide", "acl", "command", "env", "figure", "arg", "stats", "budget", "resp", "transport", "shared", "limit"},
		why:     "a session passes bytes to the command that they name: it knows what a command is, and no command",
	},
	"front/headers": {pure: true, why: "the header fields of a decision are the same for every front and for callers in other languages: headers knows none of them"},
	"front/use":     {imports: []string{"resp"}, pure: true, why: "the words and the reply of RL.USE are the same for every front: use knows no session"},
	"front/descriptors": {
		imports: []string{"front/use", "limit", "limitador", "resp", "rls", "rls/wire"},
		why:     "the answers to descriptors are those of RL.USE: descriptors knows no port and no store, and the server passes it functions",
	},
	"front/drain": {why: "ports stop in one way, whatever their peers do: drain knows no protocol"},
	"front/envoy": {
		imports: []string{"front/descriptors", "front/drain", "rls/wire"},
		why:     "the port carries the messages of the service: package descriptors answers them",
	},
	"front/login": {
		imports: []string{"acl"},
		why:     "passwords are checked in one way for all HTTP ports: login knows no request",
	},
	"front/web": {
		imports: []string{"front/descriptors", "front/drain", "front/headers", "front/login", "front/use", "limitador", "listen", "resp", "rls", "rls/messages", "rls/wire"},
		why:     "the port asks by RL.USE on a session within the process: it knows no policy, and the server passes it functions",
	},
	"admin": {
		imports: []string{"acl", "front/login", "listen"},
		why:     "admin decides which clients may reach the handlers of its port; it does not know their answers",
	},
	"admin/page": {why: "the page is a file, and gets all that it shows from the API"},
	"metrics": {
		imports: []string{"figure"},
		why:     "metrics range over the registry of figures: they call no other part",
	},
	"report": {
		imports: []string{"acl", "calendar", "figure", "stats", "limit"},
		why:     "the server passes the figures of a report to it: report knows no session, no store and no port",
	},
	"top": {
		imports: []string{"report"},
		why:     "top shows reports in a terminal: the program passes the function that asks a server",
	},
	"process": {why: "the operating system and Go's runtime tell about a process: the package knows no server"},
	"listen":  {why: "a socket is opened by its address: the package knows no option and no transport"},
	"loglimit": {
		imports: []string{"gcra", "limit"},
		why:     "a line of a log is limited by its message alone: loglimit knows no part that writes lines",
	},
	"optionfile": {why: "optionfile reads and writes the bytes of a file: the caller parses them"},
	"tlsconfig": {
		imports: []string{"optionfile"},
		why:     "tlsconfig reads certificates and names: it does not know the connections that use them",
	},
	"config": {
		imports: []string{"policy", "remote/engine", "commands", "acl", "env", "stats", "optionfile", "resp", "tlsconfig", "transport"},
		why:     "options are text, and the packages that read them act on them: config knows no server and no store",
	},
	"config/envoyenv": {
		imports: []string{"config"}, pure: true,
		why: "the variables of another program become options of this one: only the names of options are known here, and the caller reads the environment",
	},
	"server": {
		imports: []string{"acl", "acl/userfile", "admin", "admin/page", "calendar", "clause", "command", "command/policystore", "commands", "config", "env", "figure", "front/descriptors", "front/envoy", "front/headers", "front/login", "front/use", "front/web", "keyspace", "keyspace/clock", "limit", "limitador", "listen", "local", "loglimit", "metrics", "optionfile", "persistence", "persistence/manager", "policy", "policy/policyfile", "policy/registry", "policy/strict", "process", "ratelimit", "remote", "remote/adapter", "remote/records", "remote/servers", "replication", "replication/protocol", "replication/redis", "report", "resp", "rls", "rls/ruledir", "rls/wire", "session", "slidingwindow", "stats", "tlsconfig", "transport", "transport/direct", "transport/epoll", "transport/goroutine"},
		why:     "server is the assembly: it may import every part, and only cmd/ imports it",
	},

	"examples/cluster": {imports: []string{"examples/demo"}, why: exampleWhy},
	"examples/gateway": {imports: []string{"examples/demo"}, why: exampleWhy},
	"examples/standby": {imports: []string{"examples/demo"}, why: exampleWhy},
}

const pureWhy = "an algorithm turns a state and an instant into a decision: no clock, no I/O, no lock, no log, no waiting"

const exampleWhy = "a demonstration starts the server as a program, as its readers do: it imports none of its packages"

// impure lists the packages that a pure package must not import. Packages below them must not be
// imported, either.
var impure = []string{"net", "os", "log", "sync", "context"}

// external says which folders may import one package of another module.
type external struct {
	path string
	// in lists the folders whose production files may import the package.
	in []string
	// inTests allows every test file to import the package.
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
		why: "only collection keeps ordered elements",
	},
	{
		path: "github.com/redis/go-redis", in: []string{"remote/engine", "cmd", "compat_test", "examples", "internal/storetest"}, inTests: true,
		why: "the server is no client; only remote, the migration commands, examples and tests talk to a server",
	},
	{
		path: "go.yaml.in/yaml", in: []string{"policy/strict"}, inTests: true,
		why: "YAML has features beyond data: only policy/strict, which refuses them, reads it",
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
		why: "each part counts what it does; only metrics makes series of these counts",
	},
	{
		path: "github.com/schollz/progressbar", in: []string{"cmd"},
		why: terminalWhy,
	},
	{
		path: "github.com/stretchr/testify", in: []string{"internal", "compat_test", "transport/internal/transporttest"}, inTests: true,
		why: "an assertion library has no place in the binary",
	},
}

const terminalWhy = "only the program that runs in a terminal draws in one (docs/adr/0014)"

// clockFiles are the folders and files, by prefixes of their paths, whose production code may read
// the wall clock. They are programs and tests, the transport and the port of gRPC, which set deadlines of
// sockets, the clocks of the stores, and the assembly, which passes a stopwatch to its parts.
var clockFiles = []string{"cmd/", "compat_test/", "examples/", "internal/", "transport/", "front/envoy/connection.go", "keyspace/clock", "remote/timing.go", "server/server.go"}

const clockWhy = "the store owns the clock (docs/adr/0003): take an instant or a clock as a parameter"
