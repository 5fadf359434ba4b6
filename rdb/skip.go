package rdb

import "fmt"

// stream skips a stream in the given version of its encoding, from 1 to 4: its nodes (the first ID
// and a listpack), its length and IDs, and its consumer groups. Versions 2 and 3 have more fields.
// In version 4 data about producers follows.
func (v *values) stream(version int) error {
	if err := v.times(func() error { return v.twoTexts() }); err != nil {
		return err
	}
	fields, groupFields := 3, 2 // numbers of fields: for a stream its length and last ID; for a group its last ID
	if version >= 2 {
		fields, groupFields = fields+5, groupFields+1 // also its first ID, greatest deleted ID and entries added; entries read
	}
	if err := v.counts(fields); err != nil {
		return err
	}
	err := v.times(func() error { return v.group(version, groupFields) })
	if err != nil || version < 4 {
		return err
	}
	return v.producers()
}

// producers skips what a stream has for idempotent adding, by which a message that a producer adds
// twice becomes one entry: the duration and the number of messages for which this is kept; for each
// producer, its name and its messages (the producer's name of the message, and the ID of the
// entry); and two counts.
func (v *values) producers() error {
	if err := v.counts(2); err != nil {
		return err
	}
	err := v.times(func() error {
		if err := v.skipText(); err != nil {
			return err
		}
		return v.times(func() error {
			if err := v.skipText(); err != nil {
				return err
			}
			return v.counts(2)
		})
	})
	if err != nil {
		return err
	}
	return v.counts(2)
}

// twoTexts skips two strings.
func (v *values) twoTexts() error {
	if err := v.skipText(); err != nil {
		return err
	}
	return v.skipText()
}

// group skips a consumer group: its name, the given number of fields, its pending entries (ID,
// time, number of deliveries), and its consumers (name, times, the IDs of their pending entries).
func (v *values) group(version, fields int) error {
	if err := v.skipText(); err != nil {
		return err
	}
	if err := v.counts(fields); err != nil {
		return err
	}
	err := v.times(func() error {
		if err := v.skip(16 + 8); err != nil {
			return err
		}
		return v.counts(1)
	})
	if err != nil {
		return err
	}
	times := uint64(8) // number of bytes of the time at which a consumer was last seen
	if version >= 3 {
		times += 8 // and of the time at which it was last active
	}
	return v.times(func() error {
		if err := v.skipText(); err != nil {
			return err
		}
		if err := v.skip(times); err != nil {
			return err
		}
		return v.times(func() error { return v.skip(16) })
	})
}

// times reads a number and calls one that many times. Each call must read something, so that a
// number which is too large leads to an error at the end of the input.
func (v *values) times(one func() error) error {
	n, err := v.count()
	if err != nil {
		return err
	}
	for range n {
		if err := one(); err != nil {
			return err
		}
	}
	return nil
}

// module skips the data that a module has saved, up to its end. An unknown opcode is an error.
func (v *values) module() error {
	for {
		kind, err := v.count()
		if err != nil {
			return err
		}
		switch kind {
		case moduleEnd:
			return nil
		case moduleSigned, moduleNumber:
			err = v.counts(1)
		case moduleFloat:
			err = v.skip(4)
		case moduleDouble:
			err = v.skip(8)
		case moduleString:
			err = v.skipText()
		default:
			err = fmt.Errorf("%w opcode %d of a module", ErrUnknown, kind)
		}
		if err != nil {
			return err
		}
	}
}

// moduleName reads the ID of a module's type, and returns the name in it. The ID has nine
// characters of 6 bits each, and a version of 10 bits.
func (v *values) moduleName() (string, error) {
	id, err := v.count()
	if err != nil {
		return "", err
	}
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var name [9]byte
	for i := range name {
		name[i] = characters[id>>(58-6*i)&63]
	}
	return string(name[:]), nil
}

// moduleAux skips data of a module that belongs to no key, and notifies the visitor. The data
// consists of the ID of the module, the time at which it is to be loaded (an opcode and a number),
// and the saved data.
func (v *values) moduleAux() error {
	name, err := v.moduleName()
	if err != nil {
		return err
	}
	opcode, err := v.count()
	if err != nil {
		return err
	}
	if opcode != moduleNumber {
		return corrupt("data of module %s without a time to load it", name)
	}
	if err := v.counts(1); err != nil {
		return err
	}
	if err := v.module(); err != nil {
		return err
	}
	return v.visitor.skipped("module data "+name, nil)
}

// keyMetadata skips the metadata that modules of Redis 8.6 have saved for the next key: their
// number, and for each of them a name of four bytes and the saved data.
func (v *values) keyMetadata() error {
	return v.times(func() error {
		if err := v.skip(4); err != nil {
			return err
		}
		return v.module()
	})
}

// slotImport skips the data of an import of slots that was in progress in Valkey 9, a name and
// ranges of slots, and notifies the visitor.
func (v *values) slotImport() error {
	if err := v.skipText(); err != nil {
		return err
	}
	if err := v.times(func() error { return v.counts(2) }); err != nil {
		return err
	}
	return v.visitor.skipped("slot import", nil)
}
