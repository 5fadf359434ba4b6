package config

import (
	"errors"
	"strings"
	"time"

	"github.com/cellserver/cellserver/commands/env"
)

// outputLimits is `client-output-buffer-limit` as Redis writes it: for each class of
// clients a hard bound, a soft one, and for how many seconds that may be exceeded. A
// Value may name some of the classes only; the others stay as they are.
type outputLimits struct{}

// defaultOutputLimits is the default of Redis. Only the bound of pubsub has an effect:
// client-output-backlog bounds other clients, and there are no replicas.
const defaultOutputLimits = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"

// outputClasses are the classes, in the order in which they are shown.
var outputClasses = []string{"normal", "slave", "pubsub"}

func (k outputLimits) parse(v string) (string, error) { return k.change(defaultOutputLimits, v) }

// change returns old with the classes that v names replaced.
func (outputLimits) change(old, v string) (string, error) {
	fields, given := strings.Fields(old), strings.Fields(v)
	if len(given)%4 != 0 {
		return "", errors.New("Wrong number of arguments in buffer limit configuration.") //nolint:revive,staticcheck // Redis' words
	}
	for ; len(given) > 0; given = given[4:] {
		at := outputClass(given[0])
		if at < 0 {
			return "", errors.New("Invalid client class specified in buffer limit configuration.") //nolint:revive,staticcheck // Redis' words
		}
		for i, kind := range []kind{size{0, 1 << 50}, size{0, 1 << 50}, integer{0, 1<<31 - 1, "s"}} {
			value, err := kind.parse(given[1+i])
			if err != nil {
				return "", errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.") //nolint:revive,staticcheck // Redis' words
			}
			fields[4*at+1+i] = value
		}
	}
	return strings.Join(fields, " "), nil
}

func (outputLimits) hint() string { return "class hard soft seconds ..." }

// outputClass returns the index of a class, -1 if there is none of that name.
func outputClass(name string) int {
	if strings.EqualFold(name, "replica") {
		name = "slave"
	}
	for i, c := range outputClasses {
		if strings.EqualFold(name, c) {
			return i
		}
	}
	return -1
}

// ofSubscribers reads the bound of pubsub from a value that parse has accepted.
func (outputLimits) ofSubscribers(v string) env.OutputLimit {
	f := strings.Fields(v)[4*outputClass("pubsub"):]
	return env.OutputLimit{
		Hard: int(number(f[1])),
		Soft: int(number(f[2])),
		For:  time.Duration(number(f[3])) * time.Second,
	}
}
