package keyspace

// lock locks the shard of the keys with hash h and returns it. It waits until no key with hash h is
// claimed. If the handle holds keys, the shard must be one of the shards of these keys, which are
// locked already. lock advances the instants of the handle and of the shard to the later of the
// two, and gives the shard the recorder and the observer of the handle: see attend.
func (v *Handle) lock(h uint64) *shard { return v.lockFor(int(h>>v.ks.shift), h) }

// lockAt does for all keys of the shard with index i what lock does for the keys with one hash.
func (v *Handle) lockAt(i int) *shard { return v.lockFor(i, anyHash) }

// lockFor locks the shard with index i, which is the shard of h, as lock does. h may be anyHash.
// lockFor panics if the handle holds keys but not the shard.
func (v *Handle) lockFor(i int, h uint64) *shard {
	s := &v.ks.shards[i]
	if !v.holding {
		s.mu.Lock()
		if s.claimed {
			s.await(h)
		}
	} else if !v.held.has(i) {
		panic("keyspace: a key outside of what is held")
	}
	if v.now > s.last {
		s.last = v.now
	} else {
		v.now = s.last
	}
	v.attend(s)
	return s
}

// attend gives the locked shard s the recorder, the observer, the pop server and the slack of this
// handle.
func (v *Handle) attend(s *shard) {
	if ks := v.ks; ks.attentive.Load() {
		s.recorder = nil
		if ks.journal.Load() != nil {
			s.recorder = &v.recorder
		}
		if ks.observing.Load() {
			s.by = &v.observed
		}
	}
	if s.pops.Any() {
		s.server = &v.pops
	}
	s.slack = v.slack
}

// unlock commits the recorded effects, unlocks s, and notifies the observer. If the handle holds
// keys, unlock does nothing: then Unlock does that.
func (v *Handle) unlock(s *shard) {
	if v.holding {
		return
	}
	if !v.recorder.Empty() {
		v.commit()
	}
	if v.observed.told {
		v.expireSeen()
		s.mu.Unlock()
		v.unlocked()
		return
	}
	s.mu.Unlock()
}

// followReset makes sure that the shards of set, which are locked, do not get an instant that was
// read before a call of [Keyspace.ResetInstants]. A handle that is in no batch may still have such
// an instant. In that case followReset reads the clock anew, and advances the handle to the latest
// instant of these shards.
func (v *Handle) followReset(set *shardSet) {
	if !v.renew() {
		return
	}
	v.now = v.ks.clock.Now()
	set.each(func(i int) { v.now = max(v.now, v.ks.shards[i].last) })
}
