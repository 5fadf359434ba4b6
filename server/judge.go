package server

import "errors"

// Verdict is what becomes of an option of a running Redis.
type Verdict int

// The verdicts.
const (
	// Honoured options mean here what they mean in Redis.
	Honoured Verdict = iota
	// Idle ones mean nothing here.
	Idle
	// Refused ones keep the server from starting.
	Refused
)

// Judge returns what becomes of an option with a value as CONFIG GET shows it. The value
// is in the form that this server shows; why is set where it is refused.
func Judge(name, value string) (v Verdict, shown string, why error) {
	c := DefaultConfig()
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
