package libraries

// maxJSONDepth is lua-cjson's default, and the most that can be set here: both
// ways recurse.
const maxJSONDepth = 1000

// jsonSettings are what the cjson.*_* functions set. Zero means the default, so
// that clearing them after a run leaves nothing for the next.
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
