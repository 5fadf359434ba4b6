package stats

import "hash/maphash"

// find returns the number of the group called name, whose hash is hash; ok is false if the lane
// does not know the group.
func (l *GroupLane) find(name []byte, hash uint64) (id int, ok bool) {
	if len(l.slots) == 0 {
		return 0, false
	}
	for i := hash; ; i++ {
		s := &l.slots[i%uint64(len(l.slots))]
		switch {
		case s.id == 0:
			return 0, false
		case s.hash == hash && l.names[s.id-firstNamed] == string(name):
			return s.id, true
		}
	}
}

// learn adds the group called name, which has the next number, to the groups that the lane knows.
// The hash table is at most half full.
func (l *GroupLane) learn(name string) {
	if l.slots == nil {
		size := 16
		for size < 2*l.all.maxNamed {
			size *= 2
		}
		l.slots, l.memo = make([]groupSlot, size), make([]byte, 0, maxGroupName+len(l.all.delimiter))
	}
	hash := maphash.String(l.all.seed, name)
	i := hash % uint64(len(l.slots))
	for l.slots[i].id != 0 {
		i = (i + 1) % uint64(len(l.slots))
	}
	l.names = append(l.names, name)
	l.slots[i] = groupSlot{hash, firstNamed + len(l.names) - 1}
}

// Reset sets the published counts to zero. Groups keep their numbers and names. Any goroutine may
// call it.
func (l *GroupLane) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.totals)
	l.retries = Retries{}
}

// addTo adds the published counts of the lane to sums, whose index is the number of a group.
func (l *GroupLane) addTo(sums []GroupCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range min(len(l.totals), len(sums)) {
		sums[id].Calls += l.totals[id].Calls
		sums[id].Denied += l.totals[id].Denied
		sums[id].Near += l.totals[id].Near
	}
}
