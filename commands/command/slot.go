package command

// maxSlots is how many groups may keep something for each worker.
const maxSlots = 24

// Registry gives groups of commands their places in what sessions carry for them. It is
// filled while the table is made, and never changes afterwards.
type Registry struct {
	workers []func(w *Worker) any
}

// Slot is the place of one group in each worker: what it keeps there is its own, and used
// by one goroutine at a time.
type Slot[T any] struct{ at int }

// WorkerSlot takes a place, which make fills for a new worker.
func WorkerSlot[T any](r *Registry, make func(w *Worker) *T) Slot[T] {
	if len(r.workers) == maxSlots {
		panic("command: too many groups")
	}
	r.workers = append(r.workers, func(w *Worker) any { return make(w) })
	return Slot[T]{len(r.workers) - 1}
}

// Of returns what the group keeps in a worker.
func (s Slot[T]) Of(w *Worker) *T { return w.slots[s.at].(*T) }

// Equip fills the places of a new worker.
func (r *Registry) Equip(w *Worker) {
	for i, make := range r.workers {
		w.slots[i] = make(w)
	}
}
