package clause

import (
	"errors"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// LeaseAcquire parses the arguments of
//
//	CC.ACQUIRE key limit lease member [MS] [PEEK] [BLOCK timeout]
//
// into call, whose member refers to args. maxMembers is the option cc-max-members. The words are
// checked from left to right, then the timeout, then whether PEEK excludes BLOCK, and last the
// bounds of lease and member. The error is "" on success.
func LeaseAcquire(args [][]byte, maxMembers int64, call *concurrency.Call) resp.Error {
	if len(args) < 4 {
		return resp.WrongArity("cc.acquire")
	}
	c := concurrency.Call{Op: concurrency.Acquire, Member: args[3], MaxMembers: maxMembers}
	var lease int64
	if err := arg.Positive(args[1], "limit", &c.Limit); err != "" {
		return err
	}
	if err := arg.Time(args[2], "lease", &lease); err != "" {
		return err
	}
	var timeout, excluded []byte
	for rest := args[4:]; len(rest) > 0; {
		word, err := rest[0], resp.Error("")
		rest = rest[1:]
		switch {
		case arg.IsWord(word, "MS"):
			err = arg.Once(word, &c.Millis)
		case arg.IsWord(word, "PEEK"):
			err = arg.Once(word, &c.Peek)
		case arg.IsWord(word, "BLOCK") && len(rest) > 0:
			timeout, rest, err = rest[0], rest[1:], arg.Once(word, &c.Block)
		default:
			err = resp.SyntaxNear(word)
		}
		if err != "" {
			return err
		}
		if c.Peek && c.Block && excluded == nil {
			excluded = word
		}
	}
	if c.Block {
		var err resp.Error
		if c.Timeout, err = arg.Timeout(timeout, leaseUnit(&c)); err != "" {
			return err
		}
	}
	if excluded != nil {
		return resp.SyntaxNear(excluded)
	}
	return buildLease(&c, lease, call)
}

// LeaseRelease parses the arguments `CC.RELEASE key member` into call, whose member refers to args.
// The error is "" on success.
func LeaseRelease(args [][]byte, call *concurrency.Call) resp.Error {
	if len(args) != 2 {
		return resp.WrongArity("cc.release")
	}
	return buildLease(&concurrency.Call{Op: concurrency.Release, Member: args[1]}, 0, call)
}

// LeaseRenew parses the arguments `CC.RENEW key member lease [MS]` into call, whose member refers
// to args. The error is "" on success.
func LeaseRenew(args [][]byte, call *concurrency.Call) resp.Error {
	if len(args) < 3 {
		return resp.WrongArity("cc.renew")
	}
	c := concurrency.Call{Op: concurrency.Renew, Member: args[1]}
	var lease int64
	if err := arg.Time(args[2], "lease", &lease); err != "" {
		return err
	}
	for _, word := range args[3:] {
		if !arg.IsWord(word, "MS") {
			return resp.SyntaxNear(word)
		}
		if err := arg.Once(word, &c.Millis); err != "" {
			return err
		}
	}
	return buildLease(&c, lease, call)
}

// leaseClause parses a clause with its first word,
//
//	CC limit lease
//
// into call. The member is not set.
func leaseClause(args [][]byte, o Options, call *concurrency.Call) resp.Error {
	word, args := args[0], args[1:]
	switch {
	case len(args) < 2:
		return resp.SyntaxNear(word)
	case len(args) > 2:
		return resp.SyntaxNear(args[2])
	}
	c := concurrency.Call{Op: concurrency.Acquire, MaxMembers: o.MaxMembers, Millis: o.Unit == time.Millisecond}
	var lease int64
	if err := arg.AtLeast(args[0], "limit", o.leastLimit(), &c.Limit); err != "" {
		return err
	}
	if err := arg.Time(args[1], "lease", &lease); err != "" {
		return err
	}
	return buildLease(&c, lease, call)
}

func leaseUnit(c *concurrency.Call) time.Duration {
	if c.Millis {
		return time.Millisecond
	}
	return time.Second
}

// buildLease sets c.Lease to lease, a number of milliseconds if c.Millis is set and otherwise of
// seconds, validates c and copies it to call. If c is not valid, it returns the error and leaves call
// unchanged.
func buildLease(c *concurrency.Call, lease int64, call *concurrency.Call) resp.Error {
	c.Lease = time.Duration(limit.SatMul(lease, int64(leaseUnit(c))))
	if err := c.Validate(); err != nil {
		return leaseError(err)
	}
	*call = *c
	return ""
}

// leaseError returns the reply for err, an error of concurrency.Call.Validate.
func leaseError(err error) resp.Error {
	switch {
	case errors.Is(err, concurrency.ErrRange):
		return resp.ErrNotPositive
	case errors.Is(err, concurrency.ErrLeaseTooLong):
		return resp.ErrLeaseTooLong
	case errors.Is(err, concurrency.ErrMemberTooLong):
		return resp.ErrMemberTooLong
	}
	return resp.ErrInternal
}
