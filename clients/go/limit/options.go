package limit

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// OnUnavailable says how a limiter decides calls that the server does not decide.
type OnUnavailable uint8

// These are the choices for OnUnavailable. There is no default.
const (
	// Allow lets calls pass. It is for quotas, where an outage does more harm than too many calls.
	Allow OnUnavailable = iota + 1
	// Deny refuses calls. It is for logins, and for calls that cost money. An HTTP response has the
	// status 503.
	Deny
	// Local limits calls in the process. Each of Options.Instances processes has an equal share of
	// the limits.
	Local
)

// These are the bounds and defaults of [Options].
const (
	DefaultDeadline    = 50 * time.Millisecond
	MinDeadline        = 20 * time.Millisecond
	MaxDeadline        = time.Second
	DefaultDenialCache = time.Second
)

// Options are the options of a [Limiter]. Required are OnUnavailable, either URL or Client, and either Policy or
// Limits.
type Options struct {
	// URL is the address of the server, such as redis://limits:6379. With it, the limiter makes its own connections.
	URL string
	// Client is a client of the application: see [GoRedis]. The limiter does not close it.
	Client Client

	// Policy is the name of a policy of the server: 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'.
	Policy string
	// Limits are clauses such as "TB 200 100 1", for servers without policies. If there are several, either all are
	// charged or none.
	Limits []string
	// Name is the first part of the keys of Limits on the server, and their name in header fields. It has the same
	// characters as Policy. The default is "limit".
	Name string
	// Class and Keep are the options CLASS and KEEP of RL.USE, for a policy. At most one of them is set.
	Class, Keep string

	// Deadline is the maximum time of a call, including waiting for a connection, dialling, sending and receiving. It
	// is from 20 ms to 1 s; the default is 50 ms.
	Deadline time.Duration
	// OnUnavailable says how calls are decided that the server does not decide. It is required.
	OnUnavailable OnUnavailable
	// Instances returns the number of processes that share the limits, at least 1. It is required with Local, which
	// calls it at the beginning of an outage.
	Instances func() int
	// Fallback are the clauses for Local. By default, Limits or the clauses of the policy are used. The limiter reads
	// the policy at the start and every minute, for which it needs the permission to call RL.POLICY GET.
	Fallback []string
	// DenialCache is the maximum time for which a denial is repeated from memory. The default is 1 s, and a negative
	// time switches the cache off.
	DenialCache time.Duration
	// Ban says that the policy has BAN, which counts denied calls at the server. It turns the cache of denials off.
	Ban bool
	// RandomID gives each call a random ID, so that the call can be sent again if the connection breaks, and counts
	// once.
	RandomID bool

	// Log receives errors of the configuration, and, at most once a minute, a line about an unavailable server. The
	// default is slog.Default().
	Log *slog.Logger
	// Observe is called after each decision, for metrics. It must not block.
	Observe func(Event)
	// Now returns the time, and is set by tests; the default is time.Now. Deadlines always use the machine's clock.
	Now func() time.Time
}

// Event describes a decision, for metrics. It does not contain the key.
type Event struct {
	Policy  string
	Allowed bool
	Source  Source
	// Duration is the time that the decision took.
	Duration time.Duration
	// Reason says why the server was not available: "timeout", "refused", "broken", "open" (the breaker), or the first
	// word of an error such as LOADING or NOPOLICY. It is "" if the server was available.
	Reason string
}

// ErrOptions is the error for options that are invalid or contradict each other.
var ErrOptions = errors.New("limit: wrong options")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
}

// settle checks the options and sets the defaults. config is the part of the options that each call needs. fallback has
// the clauses for Local, if they are known.
func (o *Options) settle() (config rules.Config, fallback []rules.Clause, err error) {
	switch {
	case (o.URL == "") == (o.Client == nil):
		return config, nil, wrong("either URL or Client is needed")
	case (o.Policy == "") == (len(o.Limits) == 0):
		return config, nil, wrong("either Policy or Limits is needed")
	case o.OnUnavailable < Allow || o.OnUnavailable > Local:
		return config, nil, wrong("OnUnavailable is needed: Allow, Deny or Local")
	case o.OnUnavailable == Local && o.Instances == nil:
		return config, nil, wrong("Local needs Instances")
	case o.Class != "" && o.Keep != "":
		return config, nil, wrong("Class and Keep exclude each other")
	}
	if o.Deadline == 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Deadline < MinDeadline || o.Deadline > MaxDeadline {
		return config, nil, wrong("Deadline is %v, and must be from %v to %v", o.Deadline, MinDeadline, MaxDeadline)
	}
	if o.DenialCache == 0 {
		o.DenialCache = DefaultDenialCache
	}
	if o.Ban {
		o.DenialCache = -1
	}
	if o.Name == "" {
		o.Name = "limit"
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	config = rules.Config{Policy: o.Policy, Class: o.Class, Keep: o.Keep}
	if len(o.Limits) > 0 {
		config.Policy = o.Name
	}
	if err := rules.CheckName(config.Policy); err != nil {
		return config, nil, wrong("%q: %v", config.Policy, err)
	}
	if len(o.Limits) > 0 {
		if config.Limits, err = parse(o.Limits, time.Second); err != nil {
			return config, nil, err
		}
		if _, err := config.Words(rules.Request{}); err != nil {
			return config, nil, wrong("%v", err)
		}
	}
	if fallback, err = parse(o.Fallback, time.Second); err != nil {
		return config, nil, err
	}
	if fallback == nil {
		fallback = config.Limits
	}
	return config, fallback, nil
}

// parse returns the clauses in texts, whose times are in units.
func parse(texts []string, unit time.Duration) (clauses []rules.Clause, err error) {
	for _, text := range texts {
		c, err := rules.ParseClause(text, unit)
		if err != nil {
			return nil, wrong("%v", err)
		}
		clauses = append(clauses, c)
	}
	return clauses, nil
}
