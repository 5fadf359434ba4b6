package rdb

// encoding describes how to read values of one type.
type encoding struct {
	kind Kind
	field
	// open decodes a value in a packed encoding. It is nil if the value is a sequence of strings.
	open func(blob []byte) (packed, error)
	// read, if not nil, reads a value that has neither of these two forms.
	read func(v *values) error
}

// encodingOf returns the encoding of type t in an RDB of Redis or, if valkey is true, of Valkey.
// The second result is false if t is not the type of a collection.
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

// encodings has the encoding of each type of collections. For type 22 it has the encoding of Redis.
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

// collection reads the value of key, a list, set, hash or sorted set with encoding e, and passes it
// to the visitor in parts.
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
