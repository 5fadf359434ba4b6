package keyspace

// Flush deletes all keys of db at one instant.
func (v *View) Flush(db int) { v.flush(db, db+1) }

// FlushAll deletes all keys at one instant.
func (v *View) FlushAll() { v.flush(0, v.ks.Databases()) }

// flush detaches the tables under the locks, which is quick whatever they hold,
// and gives their memory back afterwards.
func (v *View) flush(from, to int) {
	for _, t := range v.detach(from, to) {
		t.Free()
	}
}

func (v *View) detach(from, to int) (tables []table) {
	var all shardSet
	for i := range v.ks.shards {
		all.add(i)
	}
	defer v.releaseHere(v.holdHere(&all, anyKey))
	if v.ks.journal != nil {
		for db := from; db < to; db++ {
			v.recorder.Flush(db)
		}
	}
	for i := range v.ks.shards {
		s := v.lockAt(i)
		for db := from; db < to; db++ {
			if t := s.clear(db); t != nil {
				tables = append(tables, t)
			}
		}
	}
	v.flushed()
	return tables
}
