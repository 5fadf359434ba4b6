package libraries

// maxJSONDepth is the maximum nesting in JSON, which is the default of lua-cjson. A larger maximum
// that a script sets has no effect, since encoding and decoding recurse.
const maxJSONDepth = 1000

// jsonSettings are the settings that scripts can change by functions of cjson. The zero value has
// the defaults, so clearing the settings after a run resets them for the next.
type jsonSettings struct {
	encodeDepth, decodeDepth, precision int
	sparse                              bool
	sparseRatio, sparseSafe             int
	ratioSet                            bool
	invalidEncode                       string
	refuseInvalid                       bool
	dropBuffer                          bool
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
