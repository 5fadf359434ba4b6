package limitador

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/limitador/cel"
	"github.com/cellserver/cellserver/rls"
)

// Prefix is the beginning of the names of all policies of limits.
const Prefix = "lim."

// PolicyOf returns the name of the policy of a limit: [Prefix], the namespace, '.' and the name of the limit, in
// the form of [rls.PolicyName]. sum is the checksum of the limit if the name alone does not identify it in the
// namespace, because it is "" or because other limits have it; then it is appended.
func PolicyOf(namespace, name, sum string) string {
	if name != "" && sum != "" {
		sum = "-" + sum
	}
	return rls.PolicyName(Prefix, namespace, name+sum)
}

// sum returns the checksum of what identifies the limit in Limitador: its namespace, window, conditions and
// variables. So a state is kept if max_value or the order of a file changes.
func (is *Limit) sum() string {
	const length = 8 // bytes
	h := sha256.New()
	write := func(text string) { _, _ = io.WriteString(h, strconv.Itoa(len(text))+":"+text) } // it never fails
	write(is.Namespace)
	write(strconv.FormatInt(is.Seconds, 10))
	for _, list := range [][]*cel.Expr{is.Conditions, is.Variables} {
		write(strconv.Itoa(len(list)))
		for _, e := range sorted(list) {
			write(e.String())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:length])
}

// sorted returns the expressions by their texts.
func sorted(list []*cel.Expr) []*cel.Expr {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *cel.Expr) int { return strings.Compare(a.String(), b.String()) })
	return list
}
