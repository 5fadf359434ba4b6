package stats

// redacted replaces a secret argument.
var redacted = []byte("(redacted)")

// Secrets calls hide with the index of each secret argument of a call.
type Secrets func(args [][]byte, hide func(i int))

// SecretsFrom returns Secrets for commands whose arguments are all secret from an index on.
func SecretsFrom(first int) Secrets {
	return func(args [][]byte, hide func(i int)) {
		for i := first; i < len(args); i++ {
			hide(i)
		}
	}
}

// Shown returns the arguments of a call with secrets replaced. It returns args itself if nothing is
// secret. secrets may be nil.
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
