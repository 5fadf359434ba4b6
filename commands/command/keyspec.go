package command

// KeySpec is where the keys are among the arguments: 1-based first and last
// (negative from the end), and the step between them. Find, where the positions
// depend on the arguments, returns their indices or false for a malformed call.
type KeySpec struct {
	First, Last, Step int
	Find              func(args [][]byte) ([]int, bool)
}

// OneKey is the KeySpec of commands whose first argument is their only key.
var OneKey = KeySpec{First: 1, Last: 1, Step: 1}

// Positions returns the indices in args that hold keys; none for a malformed call.
func (k *KeySpec) Positions(args [][]byte) []int {
	if k.Find != nil {
		at, _ := k.Find(args)
		return at
	}
	if k.First == 0 {
		return nil
	}
	last := k.Last
	if last < 0 {
		last += len(args)
	}
	var at []int
	for i := k.First; i <= last && i < len(args); i += k.Step {
		at = append(at, i)
	}
	return at
}

// Each calls f with the indices of args that hold keys.
func (k *KeySpec) Each(args [][]byte, f func(i int)) {
	if k.Find == nil && k.First > 0 && k.First == k.Last {
		if k.First < len(args) {
			f(k.First) // as positions, which makes a list
		}
		return
	}
	for _, i := range k.Positions(args) {
		f(i)
	}
}
