package rdb

// encoding says how to read values of a type.
type encoding struct {
	kind Kind
	field
	// open decodes the packed form; nil if the value is a sequence of strings.
	open func(blob []byte) (packed, error)
	// read reads a value that is neither just packed nor just a sequence of strings.
	read func(v *values) error
}

// encodingOf returns the encoding of a type; false if values of the type are not passed to the
// visitor.
func encodingOf(t byte, valkey bool) (encoding, bool) {
	if t == typeHashTTLValkey && valkey {
		return encoding{kind: Hash, read: (*values).valkeyHash}, true
	}
	if t > typeHashTTLValkey && valkey {
		return encoding{}, false
	}
	e, ok := encodings[t]
	return e, ok
}

var encodings = map[byte]encoding{
	typeList:            {kind: List},
	typeListZiplist:     {kind: List, open: newZiplist},
	typeListQuick:       {kind: List, read: (*values).quicklist},
	typeListQuick2:      {kind: List, read: (*values).quicklist2},
	typeSet:             {kind: Set},
	typeSetIntset:       {kind: Set, open: newIntset},
	typeSetListpack:     {kind: Set, open: newListpack},
	typeHash:            {kind: Hash, field: withValue},
	typeHashZipmap:      {kind: Hash, field: withValue, open: newZipmap},
	typeHashZiplist:     {kind: Hash, field: withValue, open: newZiplist},
	typeHashListpack:    {kind: Hash, field: withValue, open: newListpack},
	typeHashTTLEarly:    {kind: Hash, read: (*values).earlyHash},
	typeHashTTLPackedRC: {kind: Hash, field: withExpiry, open: newListpack},
	typeHashTTL:         {kind: Hash, read: (*values).expiringHash},
	typeHashTTLPacked:   {kind: Hash, read: (*values).expiringListpack},
	typeSortedSetText:   {kind: SortedSet, read: (*values).sortedSetText},
	typeSortedSet:       {kind: SortedSet, read: (*values).sortedSet},
	typeSortedZiplist:   {kind: SortedSet, field: withScore, open: newZiplist},
	typeSortedListpack:  {kind: SortedSet, field: withScore, open: newListpack},
}

// collection reads a list, set, hash or sorted set.
func (v *values) collection(e encoding, key *Key) error {
	key.Kind = e.kind
	v.begin(key)
	read := e.read
	switch {
	case read != nil:
	case e.open != nil:
		read = func(v *values) error { return v.packedForm(e.open, e.field) }
	case e.field == withValue:
		read = (*values).plainHash
	default:
		read = (*values).plain
	}
	if err := read(v); err != nil {
		return err
	}
	return v.end()
}
