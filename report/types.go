package report

// Times in this file are civil, in Unix milliseconds, unless a name says otherwise. 0 means "never"
// or "not known". Ratios go from 0 to 1.

// Overview is a summary of the state of the server.
type Overview struct {
	At      int64   `json:"at"`
	Server  Server  `json:"server"`
	You     You     `json:"you"`
	Verdict Verdict `json:"verdict"`
	Checks  []Check `json:"checks"`
	Now     Now     `json:"now"`
	// Servers are the live servers that share the store, this one among them, at most 100.
	Servers []StoreServer `json:"servers,omitempty"`
	// Fleet has the figures of all of them, if it was asked for. Everything else is about this server.
	Fleet *Fleet `json:"fleet,omitempty"`
	// Actions are the possible actions on the verdict itself: SCRIPT KILL of its script, CLIENT
	// KILL of its client, ACL LOG for a user that cannot log in. Actions on its key are in
	// [KeyState].
	Actions []Action `json:"actions"`
}

// Server describes the process.
type Server struct {
	ID      string `json:"id"` // ID of the server: its host and port
	Version string `json:"version"`
	UptimeS int64  `json:"uptime_s"`
	// GroupBy is the delimiter after which a key's group ends, and MaxGroups the number of groups
	// that are counted separately.
	GroupBy   string `json:"group_by"`
	MaxGroups int    `json:"max_groups"`
	// Client is the command line of redis-cli for this server.
	Client string `json:"-"`
}

// You describes the user of the request.
type You struct {
	User string `json:"user"`
	// Actions says that POST /api/v1/run is enabled (admin-actions).
	Actions bool `json:"actions"`
	// May lists the commands of [Offered] that the user's rules allow, regardless of keys.
	May []string `json:"may"`
}

// These are the kinds of a verdict.
const (
	Healthy   = "healthy"
	Idle      = "idle"       // no limiter was called for a minute
	State     = "state"      // the state of the server cannot be persisted
	Refused   = "refused"    // a replica keeps its keys, because its primary has another data set
	NoStore   = "store"      // the store does not answer
	Lacking   = "replicas"   // changes are refused, because there are too few replicas
	NoPrimary = "primary"    // a replica does not receive the changes of its primary
	Errors    = "errors"     // at least half of the calls of limiters are answered with an error
	Memory    = "memory"     // memory is full
	Script    = "script"     // a script blocks all clients
	LockedOut = "locked_out" // clients of a user cannot log in
	Limit     = "limit"      // many keys of a group are denied, because its limit was lowered
	OneCaller = "one_caller" // one key has most of the denials
	Denials   = "denials"    // more calls are denied than usual, and no other verdict explains that
	Failing   = "check"      // a check fails, and no other verdict explains that
)

// Verdict is the one sentence that matters most, with its reasons.
type Verdict struct {
	Kind string `json:"kind"`
	// Sick reports a fault of the server or of its operation. A limiter that denies calls beyond
	// the configured limit is not sick.
	Sick   bool   `json:"sick"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	Since  int64  `json:"since,omitempty"`
	Key    *Key   `json:"key,omitempty"`
	DB     int    `json:"db,omitempty"` // the database of Key
	Group  *Key   `json:"group,omitempty"`
	User   *Key   `json:"user,omitempty"`
	Client int64  `json:"client,omitempty"` // ID of the client in CLIENT LIST
	Script string `json:"script,omitempty"` // the SHA-1 of the script
	Change int64  `json:"change,omitempty"` // ID of the change that explains the verdict
	Mark   string `json:"mark,omitempty"`   // the letters that mark this change in the charts
	// Share is the fraction of all denials that belong to Key or Group.
	Share float64 `json:"share,omitempty"`
}

// These are the IDs of the checks, in the order in which they are shown.
const (
	CheckP99     = "p99"
	CheckLoops   = "loops"
	CheckErrors  = "errors"
	CheckRefused = "refused"
	CheckMemory  = "memory"
	CheckState   = "state"
	CheckClock   = "clock"
	CheckScripts = "scripts"
	CheckLogins  = "logins"
	// CheckRole fails while the server is a replica that refuses its primary. The following checks
	// exist only if they apply: to a server with a store, to a replica, to a primary with replicas.
	CheckRole      = "role"
	CheckStore     = "store"
	CheckPolicies  = "policies"
	CheckFiles     = "policy_files"
	CheckCalendars = "calendars"
	CheckLink      = "link"
	CheckReplicas  = "replicas"
	CheckAcks      = "acks"
	// CheckRules exists if an option names files of rules.
	CheckRules = "rules"
)

// Check is the result of one check, a part of the answer to "is the limiter sick?".
type Check struct {
	ID    string  `json:"id"`
	OK    bool    `json:"ok"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"` // the largest Value with which the check passes
	Name  string  `json:"name"`  // the subject of the check, such as "Answers in time"
	Text  string  `json:"text"`  // the value in words: "p99 0.21 ms"
	Bound string  `json:"bound"` // the limit in words: "≤ 1 ms"
}

// Now has the figures of the last ten seconds.
type Now struct {
	CallsS      float64 `json:"calls_s"` // number of calls of limiters per second, including calls that were answered with an error
	DeniedRatio float64 `json:"denied_ratio"`
	ErrorRatio  float64 `json:"error_ratio"` // fraction of the calls that were answered with an error
	// UsualRatio is the median of DeniedRatio over the minutes of the last day. It ignores the
	// newest minutes: three quarters of the uptime, at most six hours. It is -1 in the first ten
	// minutes and without calls.
	UsualRatio float64 `json:"usual_ratio"`
	P50us      float64 `json:"p50_us"` // percentiles of the time that calls take in the server, in microseconds
	P99us      float64 `json:"p99_us"`
	Clients    int64   `json:"clients"`
	Memory     int64   `json:"memory"`     // memory in use, in bytes
	MaxMemory  int64   `json:"max_memory"` // maxmemory in bytes; 0 means no bound
	Keys       int64   `json:"keys"`       // number of keys in all databases
	// KeysDenied is the approximate number of keys that were denied in the last five minutes. It is
	// too low if keys are denied once each in long pipelines, of which only a part is examined.
	KeysDenied int64 `json:"keys_denied"`
	// Repeats is the number of calls with ID or RESERVE in the last five minutes that repeated a charged
	// call. Reservations has the numbers of reservations in this time: how many were made, and how they
	// have ended. It has only those above 0, in the order of the metrics.
	Repeats      int64   `json:"repeats,omitempty"`
	Reservations []Count `json:"reservations,omitempty"`
}

// Count is a number of events of one kind, such as "made".
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// History is the history in steps, the oldest first. All lists but Marks have the same length.
// Steps before the start of the server are omitted.
type History struct {
	Step    int64     `json:"step"` // length of a step in seconds
	From    int64     `json:"from"` // time at which the first step began
	Allowed []int64   `json:"allowed"`
	Denied  []int64   `json:"denied"` // number of denied calls in each step, not per second
	Errors  []int64   `json:"errors"` // number of calls of limiters in each step that were answered with an error
	P50us   []float64 `json:"p50_us"`
	P99us   []float64 `json:"p99_us"`
	Marks   []Change  `json:"marks"` // the changes in the time of the history
	// Fleet is set if the history has the calls of all servers. P50us and P99us are of this server.
	Fleet *Fleet `json:"fleet,omitempty"`
}

// DeniedKey describes a key in a list of the most denied or the most called keys.
type DeniedKey struct {
	DB      int     `json:"db"`
	Key     Key     `json:"key"`
	Group   Key     `json:"group"`
	DeniedS float64 `json:"denied_s"`
	CallsS  float64 `json:"calls_s"` // approximate rate of all calls of the key; never below DeniedS
	Share   float64 `json:"share"`   // fraction of all denials or, in a list of the most called keys, of all calls
	Command string  `json:"command"` // the command of the latest call, such as "cl.throttle"
	Args    Key     `json:"args"`    // the arguments after the key: "199 100 1"; at most 48 bytes
	Limit   string  `json:"limit"`   // the arguments in words: "100/s"; "" if they have no such form
	RetryMs int64   `json:"retry_ms"`
	// Clients are clients that called the key and are still connected, at most eight.
	Clients []Caller `json:"clients"`
	Since   int64    `json:"since"` // time at which the key was first denied within the history
	// Servers is the number of servers that have the key in their lists, and MissingS the maximum number of calls per
	// second, of the kind of the list, on the servers that have left it out of their lists; -1 if it is not known. Both
	// are 0 in a report of this server alone.
	Servers  int     `json:"servers,omitempty"`
	MissingS float64 `json:"missing_s,omitempty"`
}

// Caller is a client that called a key.
type Caller struct {
	ID   int64  `json:"id"`
	Name Key    `json:"name"`
	User Key    `json:"user"`
	Lib  Key    `json:"lib"` // name and version of the library
	Addr string `json:"addr"`
	// Server is the server to which the client is connected if that is another one, with ID 0; ""
	// for this server.
	Server string `json:"server,omitempty"`
}

// Group describes all keys with the same first part.
type Group struct {
	Group       Key     `json:"group"`
	CallsS      float64 `json:"calls_s"`
	DeniedRatio float64 `json:"denied_ratio"`
	// Spark is the ratio of denied calls in 60 steps of the last hour, the oldest first; -1 for a
	// step without calls.
	Spark      []float64 `json:"spark"`
	KeysDenied int64     `json:"keys_denied"` // approximate number of keys that were denied in the last five minutes
	TopShare   float64   `json:"top_share"`   // fraction of the denials of the group that belong to its most denied key
	NearRatio  float64   `json:"near_ratio"`  // fraction of the calls that were allowed near their limit (option metrics-near-limit)
	Limit      string    `json:"limit"`       // the limit of most calls of the group, in words
	Args       Key       `json:"args"`        // the arguments of most calls of the group
	// Rest says that this entry sums up the keys without a group, or the groups that are not counted
	// separately.
	Rest bool `json:"rest,omitempty"`
	// Servers is the number of servers that count the group by its name; 0 in a report of this server alone. KeysDenied
	// is then the number on the server with the most of them.
	Servers int `json:"servers,omitempty"`
}

// Change is a change that may explain an observation.
type Change struct {
	ID   int64  `json:"id"`
	At   int64  `json:"at"`
	Mark string `json:"mark"` // the letters that mark the change: A, B, ... Z, AA, ...
	Kind string `json:"kind"` // the kind: start, config, acl, reload, flush, rewrite, pause, script, certificate, client or limit
	Text string `json:"text"`
	By   string `json:"by"`
	// Group is the group that the change affects, nil if that is not a single group. Around
	// compares the calls of this group with the calls of all others.
	Group *Key `json:"group,omitempty"`
	// Around compares the times before and after the change; nil if too little is known.
	Around *Around `json:"around,omitempty"`
}

// Around describes the times before and after a change.
type Around struct {
	Group   *Key   `json:"group,omitempty"` // the group whose calls Before and After describe; nil for all groups
	Minutes int    `json:"minutes"`         // the maximum number of minutes on each side of the change
	Before  Period `json:"before"`
	After   Period `json:"after"`
}

// Period describes the time on one side of a change.
type Period struct {
	CallsS     float64 `json:"calls_s"`
	PerGranted float64 `json:"per_granted"` // calls per allowed call; -1 if none was allowed
	DeniedElse float64 `json:"denied_else"` // ratio of denied calls elsewhere, or in all groups if Around.Group is nil; -1 if unknown
}

// KeyState is the state of one key: the content of the report key.
type KeyState struct {
	DB      int    `json:"db"`
	Key     Key    `json:"key"`
	Group   Key    `json:"group"`
	Exists  bool   `json:"exists"`
	Command string `json:"command"` // the command of the latest call, such as "cl.throttle"; "" if it is not known
	Args    Key    `json:"args"`
	Limit   string `json:"limit"`
	// Info is the reply of RL.INFO by field; values are numbers or text.
	Info    map[string]any `json:"info"`
	TTLms   int64          `json:"ttl_ms"` // time to live in milliseconds; -1 if the key has no expiry
	DeniedS float64        `json:"denied_s"`
	CallsS  float64        `json:"calls_s"`
	RetryMs int64          `json:"retry_ms"`
	Clients []Caller       `json:"clients"`
	Since   int64          `json:"since"`
	Actions []Action       `json:"actions"`
	// Policy is set if the key has the state of a policy: it says what applies to that policy's
	// key. Otherwise it is nil.
	Policy *PolicyState `json:"policy,omitempty"`
	Client string       `json:"client"` // the beginning of the lines of the actions: redis-cli and its options
}

// Action is a possible action. The user may run its command.
type Action struct {
	ID   string `json:"id"`   // kind of the action: look, del, kill, off, scriptkill, block and others
	Name string `json:"name"` // name of the action, such as "Reset once"
	Args []Key  `json:"args"` // the command, for POST /api/v1/run
	Line string `json:"line"` // the command as a line for a shell: redis-cli DEL 'api:acme'
	// Danger says that the action affects clients.
	Danger bool `json:"danger"`
	// Inputs are arguments that the user may edit. Args and Line contain their proposed values
	// after the first Fixed words. A caller with other values replaces all of these.
	Fixed  int     `json:"fixed,omitempty"`
	Inputs []Input `json:"inputs,omitempty"`
}

// Input is an argument of an action that the user may edit.
type Input struct {
	Before  string `json:"before,omitempty"` // the argument that precedes the value, such as EX or REASON
	Name    string `json:"name"`
	Value   string `json:"value"`             // the value that is proposed
	Several bool   `json:"several,omitempty"` // whether the value may be several arguments
	// Empty says what it means to leave the value empty, such as "for good". Then the command has
	// neither the value nor Before. Empty is "" if a value is required.
	Empty string `json:"empty,omitempty"`
}

// ClientLine describes a connected client.
type ClientLine struct {
	Caller
	AgeS   int64  `json:"age_s"`
	IdleS  int64  `json:"idle_s"`
	DB     int    `json:"db"`
	Cmd    string `json:"cmd"` // the latest command of the client
	Memory int64  `json:"memory"`
}

// SlowCall is an entry of SLOWLOG.
type SlowCall struct {
	ID   int64  `json:"id"`
	At   int64  `json:"at"`
	Us   int64  `json:"us"`
	Args []Key  `json:"args"`
	Addr string `json:"addr"`
	Name Key    `json:"name"` // name of the client, as the client has set it
}

// RunRequest is the body of POST /api/v1/run.
type RunRequest struct {
	Args []Key `json:"args"`
	DB   int   `json:"db"`
}

// RunReply is the response to a RunRequest. At most one of the two fields is set: none for a null.
type RunReply struct {
	Reply any    `json:"reply,omitempty"` // the reply: nil, a number, a Key, a list, or an object
	Error string `json:"error,omitempty"` // the text of an error reply, such as "NOPERM ..."
}

// Failure is the body of every response with a status other than 200.
type Failure struct {
	Error string `json:"error"`
}
