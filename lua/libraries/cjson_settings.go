package libraries

// maxJSONDepth is the maximum nesting in JSON. It is the default of lua-cjson, and the maximum that
// scripts can set here, since encoding and decoding recurse.
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
