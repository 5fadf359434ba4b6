package stats

var redacted = []byte("(redacted)")

// Secrets is a function that calls hide with the index of each secret argument in args, the
// arguments of a call.
type Secrets func(args [][]byte, hide func(i int))

// SecretsFrom returns the Secrets of a command whose arguments from the index first on are secret.
func SecretsFrom(first int) Secrets {
	return func(args [][]byte, hide func(i int)) {
		for i := first; i < len(args); i++ {
			hide(i)
		}
	}
}

// Shown returns args, the arguments of a call, with the secret ones replaced. It does not change
// args, and returns args itself if nothing is secret. A nil secrets means that nothing is.
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
