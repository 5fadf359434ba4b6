package tracking

import (
	"slices"
	"strings"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// trackingCall has the parsed arguments of CLIENT TRACKING. prefixes has only the prefixes of this
// call; tracking.prefixes is not set. For BCAST without PREFIX, checkCost adds the empty prefix.
type trackingCall struct {
	tracking
	on       bool
	prefixes []string
}

const (
	errCachingMode   resp.Error = "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
	errCachingYes    resp.Error = "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
	errCachingNo     resp.Error = "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
	errOneRedirect   resp.Error = "ERR A client can only redirect to a single other client"
	errNoRedirect    resp.Error = "ERR The client ID you want redirect to does not exist"
	errPrefixAlone   resp.Error = "ERR PREFIX option requires BCAST mode to be enabled"
	errSwitchBcast   resp.Error = "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	errBcastOpt      resp.Error = "ERR OPTIN and OPTOUT are not compatible with BCAST"
	errBothOpt       resp.Error = "ERR You can't specify both OPTIN mode and OPTOUT mode"
	errSwitchOpt     resp.Error = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	errManyPrefixes  resp.Error = "ERR too many prefixes"
	errPrefixTooLong resp.Error = "ERR prefix is too long, at most 16384 bytes"
	errNoOverlap                = "Prefixes for a single client must not overlap."
)

// parseTracking parses args, the arguments of CLIENT TRACKING. exists reports whether a client with
// an ID is connected. The error is "" on success.
func parseTracking(args [][]byte, exists func(id int64) bool) (call trackingCall, err resp.Error) {
	for i := 1; i < len(args); i++ {
		more := i+1 < len(args)
		switch a := args[i]; {
		case arg.IsWord(a, "REDIRECT") && more:
			i++
			if call.redirect != 0 {
				return call, errOneRedirect
			}
			id, ok := arg.Int(args[i])
			if !ok {
				return call, resp.ErrNotInteger
			}
			if !exists(id) {
				return call, errNoRedirect
			}
			call.redirect = id
		case arg.IsWord(a, "BCAST"):
			call.broadcast = true
		case arg.IsWord(a, "OPTIN"):
			call.optIn = true
		case arg.IsWord(a, "OPTOUT"):
			call.optOut = true
		case arg.IsWord(a, "NOLOOP"):
			call.noLoop = true
		case arg.IsWord(a, "PREFIX") && more:
			i++
			call.prefixes = append(call.prefixes, string(args[i]))
		default:
			return call, resp.ErrSyntax
		}
	}
	on, ok := command.OnOff(args[0])
	if !ok {
		return call, resp.ErrSyntax
	}
	call.on = on
	return call, ""
}

// check returns the error if a client may not change its tracking options from old to those of
// call; "" if it may. old is nil if the client does not track keys. check also adds the empty
// prefix for BCAST without PREFIX.
func (call *trackingCall) check(old *tracking) resp.Error {
	if old == nil {
		old = &tracking{broadcast: call.broadcast}
	}
	switch {
	case !call.broadcast && len(call.prefixes) > 0:
		return errPrefixAlone
	case old.broadcast != call.broadcast:
		return errSwitchBcast
	case call.broadcast && (call.optIn || call.optOut):
		return errBcastOpt
	case call.optIn && call.optOut:
		return errBothOpt
	case call.optIn && old.optOut, call.optOut && old.optIn:
		return errSwitchOpt
	case !call.broadcast:
		return ""
	case len(call.prefixes) > command.MaxPatterns: // the number is checked before the prefixes are compared, which takes long
		return errManyPrefixes
	}
	if err := overlap(call.prefixes, old.prefixes); err != "" {
		return err
	}
	return call.checkCost(old)
}

// checkCost returns an error if the prefixes of one client, old ones included, are too long or too
// many. Before that, it adds the empty prefix if call has none.
func (call *trackingCall) checkCost(old *tracking) resp.Error {
	if len(call.prefixes) == 0 {
		call.prefixes = []string{""}
	}
	cost := old.cost()
	for _, p := range call.prefixes {
		if len(p) > command.MaxKey {
			return errPrefixTooLong
		}
		cost += command.SubscriptionCost([]byte(p))
	}
	if cost > command.MaxSubscribed || len(old.prefixes)+len(call.prefixes) > command.MaxPatterns {
		return errManyPrefixes
	}
	return ""
}

// comparedMost is the maximum number of prefixes that are compared pairwise. The pairwise
// comparison finds the same overlapping pair that Redis names in its error. With more prefixes the
// error may name another pair.
const comparedMost = 256

// overlap returns an error if one prefix begins with another one, and names the two in the error;
// "" if none does. old has the present prefixes of the client, and prefixes those that it adds. Two
// prefixes that are both in old are not compared.
func overlap(prefixes, old []string) resp.Error {
	if len(prefixes)+len(old) > comparedMost {
		return overlapOfMany(prefixes, old)
	}
	for i, p := range prefixes {
		for _, other := range old {
			if strings.HasPrefix(p, other) || strings.HasPrefix(other, p) {
				return overlapError(p, "an existing prefix", other)
			}
		}
		for _, other := range prefixes[i+1:] {
			if strings.HasPrefix(p, other) || strings.HasPrefix(other, p) {
				return overlapError(p, "another provided prefix", other)
			}
		}
	}
	return ""
}

// overlapOfMany is overlap for many prefixes. It sorts them, so that a string follows its prefixes,
// and compares neighbours. Two prefixes in old overlap only if one of them is empty, since CLIENT
// TRACKING ON BCAST without PREFIX adds the empty prefix. Each new prefix overlaps that one.
func overlapOfMany(prefixes, old []string) resp.Error {
	all := slices.Concat(prefixes, old)
	slices.Sort(all)
	had := make(map[string]bool, len(old))
	for _, p := range old {
		had[p] = true
	}
	for i := 1; i < len(all); i++ {
		switch p, other := all[i], all[i-1]; {
		case !strings.HasPrefix(p, other), p != other && had[p] && had[other]:
		case had[other]:
			return overlapError(p, "an existing prefix", other)
		default:
			return overlapError(p, "another provided prefix", other)
		}
	}
	if len(prefixes) > 0 && had[""] {
		return overlapError(prefixes[0], "an existing prefix", "")
	}
	return ""
}

func overlapError(prefix, what, other string) resp.Error {
	return resp.Error("ERR Prefix '" + string(command.Echo([]byte(prefix), command.MaxEcho)) + "' overlaps with " + what +
		" '" + string(command.Echo([]byte(other), command.MaxEcho)) + "'. " + errNoOverlap)
}

// parseCaching returns the error for the argument word of CLIENT CACHING by a client with the
// tracking options t; "" if the argument is valid.
func parseCaching(word []byte, t *tracking) resp.Error {
	switch {
	case arg.IsWord(word, "YES") && !t.optIn:
		return errCachingYes
	case arg.IsWord(word, "NO") && !t.optOut:
		return errCachingNo
	case !arg.IsWord(word, "YES") && !arg.IsWord(word, "NO"):
		return resp.ErrSyntax
	}
	return ""
}
