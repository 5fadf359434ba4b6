package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Apply returns a copy of r to which words, rules of ACL SETUSER, were applied; or the error of the
// first wrong rule. allChannels says that the word reset permits all channels.
func (r *Rules) Apply(v Vocabulary, words []string, allChannels bool) (*Rules, error) {
	next, faults := r.applyAll(v, words, allChannels)
	if len(faults) > 0 {
		return nil, faults[0]
	}
	return next, nil
}

// applyAll does what Apply does, but goes on after a wrong rule. next has the rules that could be
// applied; it is nil if words as a whole are invalid. faults has the errors that are independent of
// each other: after a rule that could not be parsed, other errors may be its consequence, so only
// unknown names are reported then.
func (r *Rules) applyAll(v Vocabulary, words []string, allChannels bool) (next *Rules, faults []error) {
	if tooManyWords(words) {
		return nil, []error{errTooLarge}
	}
	merged, err := mergeSelectors(words)
	if err != nil {
		return nil, []error{err}
	}
	next = r.clone()
	misread := false
	for _, word := range merged {
		why := next.apply(v, word, allChannels)
		if why == "" || misread && why != whyUnknown {
			continue
		}
		misread = misread || why != whyUnknown
		faults = append(faults, &RuleError{word, why})
	}
	return next.seal(), faults
}

// tooManyWords reports whether words are so many or so long that applying them would block the
// server for long: more than maxWords rules, including those in selectors, or more than MaxRules
// bytes.
func tooManyWords(words []string) bool {
	n, size := len(words), 0
	for _, word := range words {
		size += len(word)
		if n <= maxWords && strings.HasPrefix(word, "(") {
			n += strings.Count(word, " ")
		}
	}
	return n > maxWords || size > MaxRules
}

// mergeSelectors returns words with each selector as one word: the caller may have split the text
// between its parentheses. The error is for a selector without a closing parenthesis.
func mergeSelectors(words []string) (merged []string, err *parenthesisError) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "(") || strings.HasSuffix(word, ")") {
			merged = append(merged, word)
			continue
		}
		from := i
		for i++; i < len(words) && !strings.HasSuffix(words[i], ")"); i++ {
		}
		if i == len(words) {
			return nil, &parenthesisError{word}
		}
		merged = append(merged, strings.Join(words[from:i+1], " "))
	}
	return merged, nil
}

// apply applies word, one rule, to r. why is the reason if the rule is wrong, and "" on success.
// allChannels has the same meaning as for Apply.
func (r *Rules) apply(v Vocabulary, word string, allChannels bool) (why string) {
	switch strings.ToLower(word) {
	case "":
	case "on":
		r.On = true
	case "off":
		r.On = false
	case "nopass":
		r.NoPass, r.passwords = true, nil
	case "resetpass":
		r.NoPass, r.passwords = false, nil
	case "sanitize-payload":
		r.skipSanitize = false
	case "skip-sanitize-payload":
		r.skipSanitize = true
	case "clearselectors":
		r.selectors = r.selectors[:1]
	case "reset":
		*r = *newRules(v, allChannels)
	default:
		return r.applySigned(v, word)
	}
	return ""
}

// applySigned does what apply does, for passwords, for selectors, and for rules of the root
// selector.
func (r *Rules) applySigned(v Vocabulary, word string) (why string) {
	switch word[0] {
	case '>', '<':
		return r.changePassword(word[0] == '>', sha256.Sum256([]byte(word[1:])))
	case '#', '!':
		sum, ok := parseDigest(word[1:])
		if !ok {
			return whyHash
		}
		return r.changePassword(word[0] == '#', sum)
	case '(':
		return r.addSelector(v, word)
	default:
		return r.selectors[0].apply(v, word)
	}
}

// changePassword adds the password with the digest sum if add is true, and removes it otherwise.
// why is the reason if that is not possible, and "" on success.
func (r *Rules) changePassword(add bool, sum digest) (why string) {
	at := slices.Index(r.passwords, sum)
	switch {
	case add && at < 0 && len(r.passwords) >= maxList:
		return whyTooMany
	case add && at < 0:
		r.passwords = append(r.passwords, sum)
	case !add && at < 0:
		return whyNoPassword
	case !add:
		r.passwords = slices.Delete(r.passwords, at, at+1)
	}
	r.NoPass = r.NoPass && !add
	return ""
}

// parseDigest parses text as a digest in lower-case hexadecimal digits. ok is false if text has
// another form.
func parseDigest(text string) (sum digest, ok bool) {
	if len(text) != hex.EncodedLen(len(sum)) || strings.ToLower(text) != text {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(text))
	return sum, err == nil
}

// addSelector adds the selector that word defines, as in "(+get ~key)". why is the reason if the
// selector is wrong, and "" on success.
func (r *Rules) addSelector(v Vocabulary, word string) (why string) {
	inner, closed := strings.CutSuffix(word[1:], ")")
	if !closed {
		return whySyntax
	}
	if len(r.selectors) >= maxList {
		return whyTooMany
	}
	s := newSelector(v)
	for _, rule := range SplitWords(inner) {
		if strings.HasSuffix(rule, ")") { // such a rule would end the selector in a file
			return whySyntax
		}
		if why := s.apply(v, rule); why != "" {
			return why
		}
	}
	r.selectors = append(r.selectors, s)
	return ""
}
