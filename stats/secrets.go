package stats

// redacted stands for what is not shown of a call.
var redacted = []byte("(redacted)")

// Secrets calls hide with the index of each word of a call that others may not see.
type Secrets func(args [][]byte, hide func(i int))

// SecretsFrom is for commands of which all words are secret from an index on.
func SecretsFrom(first int) Secrets {
	return func(args [][]byte, hide func(i int)) {
		for i := first; i < len(args); i++ {
			hide(i)
		}
	}
}

// Shown returns the words of a call as others may see them. It returns args itself if nothing
// is secret. secrets may be nil.
func Shown(secrets Secrets, args [][]byte) [][]byte {
	if secrets == nil {
		return args
	}
	shown := args
	secrets(args, func(i int) {
		if &shown[0] == &args[0] {
			shown = append([][]byte(nil), args...)
		}
		shown[i] = redacted
	})
	return shown
}
