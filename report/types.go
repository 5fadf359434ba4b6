package report

// Times in this file are civil, in Unix milliseconds, unless a name says otherwise. 0 is
// "never" or "not known". Ratios go from 0 to 1.

// Overview is what one look at the server has to tell.
type Overview struct {
	At      int64   `json:"at"`
	Server  Server  `json:"server"`
	You     You     `json:"you"`
	Verdict Verdict `json:"verdict"`
	Checks  []Check `json:"checks"`
	Now     Now     `json:"now"`
	// Actions are what may be done about the verdict itself: SCRIPT KILL of its script, CLIENT
	// KILL of its client, ACL LOG for a user that cannot log in. Those for its key are in
	// [KeyState].
	Actions []Action `json:"actions"`
}

// Server names the process.
type Server struct {
	ID      string `json:"id"` // host and port
	Version string `json:"version"`
	UptimeS int64  `json:"uptime_s"`
	// GroupBy is the delimiter behind which a key's group ends, and MaxGroups how many groups
	// are counted apart.
	GroupBy   string `json:"group_by"`
	MaxGroups int    `json:"max_groups"`
	// Client is redis-cli with the options by which it reaches the server.
	Client string `json:"-"`
}

// You is the user of the request.
type You struct {
	User string `json:"user"`
	// Actions says that POST /api/v1/run is there at all (admin-actions).
	Actions bool `json:"actions"`
	// May lists those of [Offered] that the user's rules allow, whatever the key.
	May []string `json:"may"`
}

// Kinds of a verdict.
const (
	Healthy   = "healthy"
	Idle      = "idle"       // no limiter has been called for a minute
	State     = "state"      // the state cannot be kept
	Refused   = "refused"    // a replica keeps its keys, since its primary has another data set
	NoStore   = "store"      // the store does not answer
	Lacking   = "replicas"   // too few replicas: changes are refused
	NoPrimary = "primary"    // a replica does not get the changes of its primary
	Errors    = "errors"     // most calls of limiters are answered with an error
	Memory    = "memory"     // memory is full
	Script    = "script"     // a script blocks all clients
	LockedOut = "locked_out" // clients of a user cannot log in
	Limit     = "limit"      // all clients of a group are denied, by another limit than before
	OneCaller = "one_caller" // one key has most of the denials
	Denials   = "denials"    // more is denied than usual, and no limit has changed
	Failing   = "check"      // a check fails that no other verdict explains
)

// Verdict is the one sentence that matters, and why.
type Verdict struct {
	Kind string `json:"kind"`
	// Sick reports a fault of the server or of its operation. A limiter that denies calls beyond
	// the configured limit is not sick.
	Sick   bool   `json:"sick"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	Since  int64  `json:"since,omitempty"`
	Key    *Key   `json:"key,omitempty"`
	DB     int    `json:"db,omitempty"` // of Key
	Group  *Key   `json:"group,omitempty"`
	User   *Key   `json:"user,omitempty"`
	Client int64  `json:"client,omitempty"` // as in CLIENT LIST
	Script string `json:"script,omitempty"` // its SHA-1
	Change int64  `json:"change,omitempty"` // ID of the change that explains it
	Mark   string `json:"mark,omitempty"`   // the letter of that change
	// Share is the share of the denials that Key or Group has.
	Share float64 `json:"share,omitempty"`
}

// IDs of the checks, in the order in which they are shown.
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
	// CheckRole says whether the server is a primary. The others are there if they are about
	// something: a store, a primary to follow, replicas.
	CheckRole     = "role"
	CheckStore    = "store"
	CheckLink     = "link"
	CheckReplicas = "replicas"
	CheckAcks     = "acks"
)

// Check is one answer to "is the limiter sick?".
type Check struct {
	ID    string  `json:"id"`
	OK    bool    `json:"ok"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"` // the largest Value that is OK
	Name  string  `json:"name"`  // what is checked, such as "Answers in time"
	Text  string  `json:"text"`  // Value in words: "p99 0.21 ms"
	Bound string  `json:"bound"` // Limit in words: "≤ 1 ms"
}

// Now is the last ten seconds.
type Now struct {
	CallsS      float64 `json:"calls_s"` // of limiters a second, those answered with an error, too
	DeniedRatio float64 `json:"denied_ratio"`
	ErrorRatio  float64 `json:"error_ratio"` // of the calls: answered with an error
	// UsualRatio is the DeniedRatio of most minutes of the last day, but for the newest: three
	// quarters of the uptime, at most six hours. -1 in the first ten minutes.
	UsualRatio float64 `json:"usual_ratio"`
	P50us      float64 `json:"p50_us"` // time in the server, microseconds
	P99us      float64 `json:"p99_us"`
	Clients    int64   `json:"clients"`
	Memory     int64   `json:"memory"`     // bytes
	MaxMemory  int64   `json:"max_memory"` // bytes; 0 for no bound
	Keys       int64   `json:"keys"`       // in all databases
	// KeysDenied is about how many keys were denied in the last five minutes. It is too low
	// where keys are denied once each in long pipelines, of which only a part is looked at.
	KeysDenied int64 `json:"keys_denied"`
}

// History is what happened, step by step, the oldest first. All lists but Marks have the same
// length. A step in which the server did not run is not in them.
type History struct {
	Step    int64     `json:"step"` // seconds
	From    int64     `json:"from"` // when the first step began
	Allowed []int64   `json:"allowed"`
	Denied  []int64   `json:"denied"` // in the step, not a second
	Errors  []int64   `json:"errors"` // calls of limiters that were answered with an error, likewise
	P50us   []float64 `json:"p50_us"`
	P99us   []float64 `json:"p99_us"`
	Marks   []Change  `json:"marks"` // those within
}

// DeniedKey is a line of "one caller or everyone?".
type DeniedKey struct {
	DB      int     `json:"db"`
	Key     Key     `json:"key"`
	Group   Key     `json:"group"`
	DeniedS float64 `json:"denied_s"`
	CallsS  float64 `json:"calls_s"` // about; never below DeniedS
	Share   float64 `json:"share"`   // of all that was denied
	Command string  `json:"command"` // that the key was last called with: "cl.throttle"
	Args    Key     `json:"args"`    // what followed the key: "199 100 1"; at most 48 bytes
	Limit   string  `json:"limit"`   // Args in words: "100/s"; empty if that is not known
	RetryMs int64   `json:"retry_ms"`
	// Clients are those that were seen to call it and are still connected; at most eight.
	Clients []Caller `json:"clients"`
	Since   int64    `json:"since"` // when it was first denied, within the history
}

// Caller is a client that called a key.
type Caller struct {
	ID   int64  `json:"id"`
	Name Key    `json:"name"`
	User Key    `json:"user"`
	Lib  Key    `json:"lib"` // library and version
	Addr string `json:"addr"`
}

// Group is all keys with the same first part.
type Group struct {
	Group       Key     `json:"group"`
	CallsS      float64 `json:"calls_s"`
	DeniedRatio float64 `json:"denied_ratio"`
	// Spark is the ratio of denied calls in 60 steps of the last hour, the oldest first; -1
	// where none was called.
	Spark      []float64 `json:"spark"`
	KeysDenied int64     `json:"keys_denied"` // about, in the last five minutes
	TopShare   float64   `json:"top_share"`   // of the key that is denied most, of what the group is denied
	NearRatio  float64   `json:"near_ratio"`  // of the calls: allowed with less than a fifth left
	Limit      string    `json:"limit"`       // of most of its calls, in words
	Args       Key       `json:"args"`        // of most of its calls
	// Rest says that these are the calls of keys without a group, or beyond [Server.MaxGroups].
	Rest bool `json:"rest,omitempty"`
}

// Change is a change that may explain an observation.
type Change struct {
	ID   int64  `json:"id"`
	At   int64  `json:"at"`
	Mark string `json:"mark"` // a letter: A, B, ... Z, AA, ...
	Kind string `json:"kind"` // start, config, acl, reload, flush, rewrite, pause, script, certificate, client, limit
	Text string `json:"text"`
	By   string `json:"by"`
	// Group is the group that the change affects, if it is one group. In Around it is compared
	// with all others.
	Group *Key `json:"group,omitempty"`
	// Around compares what was before with what came after; nil where little is known.
	Around *Around `json:"around,omitempty"`
}

// Around is the time before and after a change.
type Around struct {
	Group   *Key   `json:"group,omitempty"` // Before and After are of its calls; nil for all
	Minutes int    `json:"minutes"`         // at most, on each side
	Before  Period `json:"before"`
	After   Period `json:"after"`
}

// Period is one side of a change.
type Period struct {
	CallsS     float64 `json:"calls_s"`
	PerGranted float64 `json:"per_granted"` // calls for each one that was allowed; -1 if none was
	DeniedElse float64 `json:"denied_else"` // ratio of denied calls of all other groups; -1 if there were none
}

// KeyState is one key.
type KeyState struct {
	DB      int    `json:"db"`
	Key     Key    `json:"key"`
	Group   Key    `json:"group"`
	Exists  bool   `json:"exists"`
	Command string `json:"command"` // that it was last called with, if that is remembered
	Args    Key    `json:"args"`
	Limit   string `json:"limit"`
	// Info is what RL.INFO says of it, by its field; values are numbers or text.
	Info    map[string]any `json:"info"`
	TTLms   int64          `json:"ttl_ms"` // -1 for no expiry
	DeniedS float64        `json:"denied_s"`
	CallsS  float64        `json:"calls_s"`
	RetryMs int64          `json:"retry_ms"`
	Clients []Caller       `json:"clients"`
	Since   int64          `json:"since"`
	Actions []Action       `json:"actions"`
	// Policy is what applies to the key, if it has the state of a policy; nil if not.
	Policy *PolicyState `json:"policy,omitempty"`
	Client string       `json:"client"` // with which the lines of actions begin: redis-cli and its options
}

// Action is something that may be done, for the commands that the user may run.
type Action struct {
	ID   string `json:"id"`   // look, del, kill, off, scriptkill, block and others
	Name string `json:"name"` // "Reset once"
	Args []Key  `json:"args"` // for POST /api/v1/run
	Line string `json:"line"` // the same for a shell: redis-cli DEL 'api:acme'
	// Danger says that clients notice it.
	Danger bool `json:"danger"`
	// Inputs are asked for: Args and Line have their values behind the first Fixed words. A caller with
	// other values replaces all of these.
	Fixed  int     `json:"fixed,omitempty"`
	Inputs []Input `json:"inputs,omitempty"`
}

// Input is a word of an action that is asked for.
type Input struct {
	Before  string `json:"before,omitempty"` // the word before it: EX, REASON
	Name    string `json:"name"`
	Value   string `json:"value"`             // that is offered
	Several bool   `json:"several,omitempty"` // the value is several words
	// Empty says what it means to give none, and to leave Before out: "for good". It is empty if
	// something has to be given.
	Empty string `json:"empty,omitempty"`
}

// ClientLine is a client that is connected.
type ClientLine struct {
	Caller
	AgeS   int64  `json:"age_s"`
	IdleS  int64  `json:"idle_s"`
	DB     int    `json:"db"`
	Cmd    string `json:"cmd"` // the last one
	Memory int64  `json:"memory"`
}

// SlowCall is an entry of SLOWLOG.
type SlowCall struct {
	ID   int64  `json:"id"`
	At   int64  `json:"at"`
	Us   int64  `json:"us"`
	Args []Key  `json:"args"`
	Addr string `json:"addr"`
	Name Key    `json:"name"` // of the client
}

// RunRequest is the body of POST /api/v1/run.
type RunRequest struct {
	Args []Key `json:"args"`
	DB   int   `json:"db"`
}

// RunReply is its answer. One of the two is set.
type RunReply struct {
	Reply any    `json:"reply,omitempty"` // nil, a number, a Key, a list, or an object
	Error string `json:"error,omitempty"` // as Redis says it: "NOPERM ..."
}

// Failure is the answer with every status that is not 200.
type Failure struct {
	Error string `json:"error"`
}
