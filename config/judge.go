package config

import "errors"

// Verdict says how this server treats a setting of a Redis.
type Verdict int

const (
	// Honoured says that the option has the meaning that it has in Redis.
	Honoured Verdict = iota
	// Idle says that the option is accepted and has no effect here.
	Idle
	// Refused says that the server would not start with the option and its value.
	Refused
)

// Judge returns how this server treats the option called name, in lower case, with a value as
// CONFIG GET of Redis shows it. shown is the value as CONFIG GET of this server shows it. why is
// the reason if the option is refused, and otherwise nil.
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
