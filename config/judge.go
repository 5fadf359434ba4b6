package config

import "errors"

// Verdict says how this server treats an option of a running Redis.
type Verdict int

// The verdicts.
const (
	// Honoured options have the meaning of Redis.
	Honoured Verdict = iota
	// Idle options have no effect here.
	Idle
	// Refused options keep the server from starting.
	Refused
)

// Judge returns how this server treats an option with a value as CONFIG GET of Redis shows
// it. shown is the value as this server shows it, and why says why it is refused.
func Judge(name, value string) (v Verdict, shown string, why error) {
	c := Default()
	if i, ours := c.byName[name]; ours {
		shown, err := c.parse(i, value)
		if err != nil {
			return Refused, value, err
		}
		return Honoured, shown, nil
	}
	o, known := c.redis[name]
	if !known {
		return Refused, value, errors.New("this server does not know it")
	}
	if err := refusedRedisValue(o.name, value); err != nil {
		return Refused, value, err
	}
	return Idle, value, nil
}
