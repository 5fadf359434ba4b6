package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// readOnly are the commands that the doctor may send, with the allowed subcommand of containers.
// None of them changes a key, a setting or what other clients see.
var readOnly = map[string]string{
	"hello": "", "auth": "", "select": "", "ping": "", "client": "setinfo", // sent when a connection begins
	"info": "", "config": "get", "module": "list", "acl": "users",
	"scan": "", "type": "", "pttl": "", "memory": "usage", "getrange": "",
	"hlen": "", "llen": "", "scard": "", "zcard": "", "strlen": "",
}

// checkReadOnly returns an error unless readOnly has the command and, if it names a subcommand, the
// call has that one. So it refuses harmless commands, too, if they are not listed.
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

// onlyRead is a hook of the client library that refuses all commands that are not in readOnly. It
// is a safeguard against mistakes in the doctor.
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
