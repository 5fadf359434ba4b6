package libraries

// maxJSONDepth is lua-cjson's default, and the maximum that can be set here, since encoding and
// decoding recurse.
const maxJSONDepth = 1000

// jsonSettings are the settings of the cjson functions. Zero means the default, so that clearing
// them after a run resets them for the next.
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
