package limit

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// OnUnavailable says what a limiter decides when the server does not.
type OnUnavailable uint8

// These are the choices. There is no default.
const (
	// Allow lets calls pass. It is for quotas, where an outage is worse than too many calls.
	Allow OnUnavailable = iota + 1
	// Deny refuses calls. It is for logins and what costs money. An HTTP response has the status 503.
	Deny
	// Local limits calls in the process: each of Options.Instances has its part of the limits.
	Local
)

// These are the bounds and defaults of [Options].
const (
	DefaultDeadline    = 50 * time.Millisecond
	MinDeadline        = 20 * time.Millisecond
	MaxDeadline        = time.Second
	DefaultDenialCache = time.Second
)

// Options are those of a [Limiter]. Either URL or Client is required, either Policy or Limits, and OnUnavailable.
type Options struct {
	// URL is the address of the server, such as redis://limits:6379. The limiter then has connections of its own.
	URL string
	// Client is a client of the application: see [GoRedis]. It is not closed by the limiter.
	Client Client

	// Policy is the name of a policy of the server: 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'.
	Policy string
	// Limits are clauses such as "TB 200 100 1", for servers without policies. Several are charged together or not at all.
	Limits []string
	// Name begins the keys of Limits on the server, and is their name in header fields. It has the characters of Policy; the default
	// is "limit".
	Name string
	// Class and Keep are the options CLASS and KEEP of RL.USE, for a policy. At most one of them is set.
	Class, Keep string

	// Deadline is the time of a call: waiting for a connection, dialling, sending and receiving. It is from 20 ms to 1 s; the default is
	// 50 ms.
	Deadline time.Duration
	// OnUnavailable decides calls that the server does not. It is required.
	OnUnavailable OnUnavailable
	// Instances returns how many processes share the limits, at least 1. It is required with Local, which calls it at the beginning
	// of an outage.
	Instances func() int
	// Fallback are the clauses for Local. Without them, those of Limits or of the policy are used. The latter are read
	// at start and every minute, which needs the permission for RL.POLICY GET.
	Fallback []string
	// DenialCache is how long a denial is repeated from memory at most. The default is 1 s, and a negative time switches the cache off.
	DenialCache time.Duration
	// Ban says that the policy has BAN, which counts denied calls at the server. It switches the cache off.
	Ban bool
	// RandomID gives each call an ID, so that it is sent again if the connection breaks, and counts once.
	RandomID bool

	// Log receives a line when the server goes away, at most once a minute, and errors of the configuration. The default is slog.Default().
	Log *slog.Logger
	// Observe is called after each decision, for metrics. It must not block.
	Observe func(Event)
	// Now is the clock for tests; the default is time.Now. The deadline is always one of the machine's clock.
	Now func() time.Time
}

// Event is a decision, for metrics. It has no key.
type Event struct {
	Policy  string
	Allowed bool
	Source  Source
	// Duration is the time of the decision.
	Duration time.Duration
	// Reason says why the server was not available: "timeout", "refused", "broken", "open" (the breaker), or the first word of an
	// error such as LOADING or NOPOLICY. It is empty if the server was.
	Reason string
}

// ErrOptions is the error of options that do not fit together.
var ErrOptions = errors.New("limit: wrong options")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
}

// settle checks the options and sets the defaults. config is what calls ask for, and fallback the clauses for Local, if they
// are known.
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
