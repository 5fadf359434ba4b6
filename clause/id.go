package clause

import (
	"strconv"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/resp"
)

// isToken reports whether text can be the argument of ID or the id of a reservation.
func isToken(text []byte) bool { return 0 < len(text) && len(text) <= idempotency.MaxToken }

// Identity has the arguments of the options ID and RESERVE, of which a call has at most one.
type Identity struct {
	// Token is the argument of ID or the id of RESERVE. It refers to the arguments of the call, and is
	// nil without both options.
	Token []byte
	// TTL is the ttl of RESERVE, from [reservation.MinTTL] to [reservation.MaxTTL]; 0 without RESERVE.
	TTL time.Duration
}

// IdentityArgs is an [Identity] whose TTL is not parsed yet, because the option MS, which determines its
// unit, may follow it.
type IdentityArgs struct {
	Identity
	ttl []byte // the second argument of RESERVE; nil without that option
}

// Identify takes text, the argument of ID. The error is "" on success.
func (i *IdentityArgs) Identify(text []byte) resp.Error {
	if i.Token = text; !isToken(text) {
		return resp.ErrTokenLength
	}
	return ""
}

// Reserves reports whether the call has RESERVE.
func (i *IdentityArgs) Reserves() bool { return i.ttl != nil }

// Reserve takes the arguments of RESERVE. It does not check ttl. The error is "" on success.
func (i *IdentityArgs) Reserve(id, ttl []byte) resp.Error {
	i.Token, i.ttl = id, ttl
	return checkReservation(id)
}

// Check sets TTL if the call has RESERVE. Then it also checks whether the call can be reserved. quantity is the
// quantity of the call, or its smallest one. exact says that the limiter of the call can give back exactly the reserved
// units. unit is the unit of times. The error is "" on success.
func (i *IdentityArgs) Check(unit time.Duration, quantity int64, exact bool) (err resp.Error) {
	switch {
	case i.ttl == nil:
		return ""
	case !exact:
		return resp.ErrReserveFamily
	case quantity < 1:
		return resp.Argument(resp.ErrNotPositive, "quantity", strconv.AppendInt(nil, quantity, 10), "at least 1 with RESERVE")
	}
	i.TTL, err = parseTTL(i.ttl, unit)
	return err
}

// checkReservation checks text, the id of a reservation. The error is "" on success.
func checkReservation(text []byte) resp.Error {
	if !isToken(text) {
		return resp.ErrReserveID
	}
	return ""
}

// parseTTL parses text, the ttl of a reservation in unit. The error is "" on success.
func parseTTL(text []byte, unit time.Duration) (ttl time.Duration, err resp.Error) {
	const must = "from 1 to 86400 seconds, with MS from 1000 to 86400000 milliseconds"
	n, ok := arg.Int(text)
	if !ok {
		return 0, resp.Argument(resp.ErrNotInteger, "ttl", text, must)
	}
	if ttl = time.Duration(limit.SatMul(n, int64(unit))); ttl < reservation.MinTTL || ttl > reservation.MaxTTL {
		return 0, resp.Argument(resp.ErrNotPositive, "ttl", text, must)
	}
	return ttl, ""
}

// Commit parses the arguments `RL.COMMIT key id actual [actual ...] [POLICY policy]` into s. The id is
// args[1]. policy is nil without POLICY. With several numbers s refers to room, whose length is the maximum
// number of them. The error is "" on success.
func Commit(args [][]byte, room []int64, s *reservation.Settlement) (policy []byte, err resp.Error) {
	if len(args) < 3 {
		return nil, resp.WrongArity("rl.commit")
	}
	if err = checkReservation(args[1]); err != "" {
		return nil, err
	}
	numbers, n := args[2:], 0
	for n == 0 || n < len(numbers) && arg.StartsNumber(numbers[n]) {
		if n == len(room) {
			return nil, resp.SyntaxNear(numbers[n])
		}
		if err = arg.AtLeast(numbers[n], "actual", 0, &room[n]); err != "" {
			return nil, err
		}
		n++
	}
	if policy, err = settleOptions(numbers[n:], nil); err != "" {
		return nil, err
	}
	*s = reservation.Settlement{Op: reservation.Commit}
	if n == 1 {
		s.Actual = room[0]
	} else {
		s.Actuals = room[:n]
	}
	return policy, ""
}

// CancelReservation parses the arguments `RL.CANCEL key id [POLICY policy]` into s. The id is args[1].
// policy is nil without POLICY. The error is "" on success.
func CancelReservation(args [][]byte, _ []int64, s *reservation.Settlement) (policy []byte, err resp.Error) {
	if len(args) < 2 {
		return nil, resp.WrongArity("rl.cancel")
	}
	if err = checkReservation(args[1]); err != "" {
		return nil, err
	}
	*s = reservation.Settlement{Op: reservation.Cancel}
	return settleOptions(args[2:], nil)
}

// RenewReservation parses the arguments `RL.RENEW key id ttl [MS] [POLICY policy]` into s. The id is
// args[1]. policy is nil without POLICY. The error is "" on success.
func RenewReservation(args [][]byte, _ []int64, s *reservation.Settlement) (policy []byte, err resp.Error) {
	if len(args) < 3 {
		return nil, resp.WrongArity("rl.renew")
	}
	if err = checkReservation(args[1]); err != "" {
		return nil, err
	}
	millis := false
	if policy, err = settleOptions(args[3:], &millis); err != "" {
		return nil, err
	}
	unit := time.Second
	if millis {
		unit = time.Millisecond
	}
	*s = reservation.Settlement{Op: reservation.Renew}
	s.TTL, err = parseTTL(args[2], unit)
	return policy, err
}

// settleOptions parses words, the options of a command that settles, in any order. It sets *millis if MS
// is one of them; millis is nil if the command has no such option. policy is nil without POLICY. The
// error is "" on success.
func settleOptions(words [][]byte, millis *bool) (policy []byte, err resp.Error) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case arg.IsWord(word, "POLICY") && len(words) > 0 && policy == nil:
			policy, words = words[0], words[1:]
		case millis != nil && arg.IsWord(word, "MS"):
			err = arg.Once(word, millis)
		default:
			err = resp.SyntaxNear(word)
		}
		if err != "" {
			return nil, err
		}
	}
	return policy, ""
}
