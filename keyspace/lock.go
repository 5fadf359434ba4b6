package keyspace

// lock returns the shard of hash h, locked, once no key of that hash is claimed. It advances the
// instants of handle and shard to the later of the two. A held shard is locked already.
func (v *Handle) lock(h uint64) *shard { return v.lockFor(int(h>>v.ks.shift), h) }

// lockAt is lock for all keys of shard i.
func (v *Handle) lockAt(i int) *shard { return v.lockFor(i, anyHash) }

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

// attend gives a locked shard the recorder and the other state of this handle.
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
	if s.pops != nil {
		s.server = &v.popServer
	}
	s.slack = v.slack
}

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

// followReset keeps an instant of before [Keyspace.ResetInstants] out of the shards of set, which
// are locked: a handle that is in no batch may still have one. It then reads the clock anew.
func (v *Handle) followReset(set *shardSet) {
	if !v.renew() {
		return
	}
	v.now = v.ks.clock.Now()
	set.each(func(i int) { v.now = max(v.now, v.ks.shards[i].last) })
}
