package convert

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/cellserver/cellserver/policy"
)

const (
	unlimited = "NONE"

	whyUnlimited = "NONE passes all calls and keeps nothing"
)

// bounds are the default bounds of the server: a zero field stands for the default of its family.
var bounds = policy.Bounds{}

// clauseFault returns the text of the error of clause, or "" if the clause is valid.
func clauseFault(clause string) string {
	_, err := policy.ParseLimits(bytes.Fields([]byte(clause)), false, bounds)
	text, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(string(err), "ERR "), "clause 1: "), "; usage: ")
	return text
}

// window returns a clause that allows limit units per window of the given length in seconds. anchor
// is an option that is appended, or "". A limit of 0 denies every call.
func window(limit, seconds int64, anchor string) string {
	return fmt.Sprintf("SW %d %d FIXED%s", limit, seconds, anchor)
}

// checksum returns the FNV-1a hash of text.
func checksum(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // Write of a hash never fails
	return h.Sum32()
}
