package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const doctorUsage = "usage: cellserver doctor redis://[user:password@]host:port [--sample n] [--timeout d]"

// doctor looks at a running Redis or Valkey and says what moves, what does not, and what
// to do. It only reads.
func doctor(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	sample := flags.Int("sample", 10_000, "")
	timeout := flags.Duration("timeout", 30*time.Second, "")
	names, err := parseMixed(flags, args)
	if err != nil {
		return fmt.Errorf("doctor: %w\n%s", err, doctorUsage)
	}
	if len(names) != 1 || *sample < 0 || *timeout <= 0 {
		return errors.New(doctorUsage)
	}
	o, err := clientOptions(names[0])
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	found, err := examine(ctx, o, *sample)
	if err != nil {
		return fmt.Errorf("doctor: %w", explain(err, o))
	}
	found.address = shownAddress(names[0])
	return writeFindings(w, judge(found))
}

// readOnly are the commands that the doctor may send, and of containers what of them: none
// changes a key, a setting or what other clients see.
var readOnly = map[string]string{
	"hello": "", "auth": "", "select": "", "ping": "", "client": "setinfo", // what a connection begins with
	"info": "", "config": "get", "module": "list", "acl": "users",
	"scan": "", "type": "", "pttl": "", "memory": "usage", "getrange": "",
	"hlen": "", "llen": "", "scard": "", "zcard": "", "strlen": "",
}

// checkReadOnly returns an error for a command that may change something.
func checkReadOnly(cmd redis.Cmder) error {
	sub, known := readOnly[cmd.Name()]
	if known && sub == "" {
		return nil
	}
	if args := cmd.Args(); known && len(args) > 1 && strings.EqualFold(fmt.Sprint(args[1]), sub) {
		return nil
	}
	return fmt.Errorf("the doctor only reads, and does not send %s", cmd.Name())
}

// onlyRead is a hook of the client that sends nothing else than readOnly, whatever the
// source above it says.
type onlyRead struct{}

// DialHook implements [redis.Hook].
func (onlyRead) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (onlyRead) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := checkReadOnly(cmd); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (onlyRead) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := checkReadOnly(cmd); err != nil {
				return err
			}
		}
		return next(ctx, cmds)
	}
}
