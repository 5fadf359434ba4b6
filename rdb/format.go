package rdb

// An RDB begins with nine bytes: REDIS and four digits of the version, or VALKEY and three digits.
const (
	headerSize = 9
	// oldest is the oldest version that is read, the version of Redis 2.8. Older files have no
	// checksum, or a format that no server in use writes.
	oldest = 6
	// newest is the newest version of Redis that is read, the version of Redis 8.6. In a newer
	// version a byte may have another meaning.
	newest = 13
	// valkeyVersion is the version of Valkey 9. Earlier versions of Valkey wrote version 11 of
	// Redis.
	valkeyVersion = 80
)

// These are the opcodes: bytes in the place of the type of a value that begin other data.
const (
	opSlotImportOrMeta = 243 // in Valkey 9 an import of slots; in Redis 8.6 the metadata of modules for a key
	opSlotInfo         = 244
	opFunction         = 245
	opModuleAux        = 247
	opIdle             = 248
	opFreq             = 249
	opAux              = 250
	opResize           = 251
	opExpireMS         = 252
	opExpire           = 253
	opSelectDB         = 254
	opEnd              = 255
)

// These are the types of values. Type 22 has different meanings in Redis and in Valkey.
const (
	typeString          = 0
	typeList            = 1
	typeSet             = 2
	typeSortedSetText   = 3 // a sorted set whose scores are text
	typeHash            = 4
	typeSortedSet       = 5 // a sorted set whose scores are binary
	typeModule          = 7
	typeHashZipmap      = 9
	typeListZiplist     = 10
	typeSetIntset       = 11
	typeSortedZiplist   = 12
	typeHashZiplist     = 13
	typeListQuick       = 14 // a list whose nodes are ziplists
	typeStream          = 15
	typeHashListpack    = 16
	typeSortedListpack  = 17
	typeListQuick2      = 18 // a list whose nodes are listpacks, or one long element
	typeStream2         = 19
	typeSetListpack     = 20
	typeStream3         = 21
	typeHashTTLEarly    = 22 // a hash of Redis 7.4 before its release; in Valkey 9 the type typeHashTTLValkey
	typeHashTTLValkey   = 22
	typeHashTTLPackedRC = 23 // a packed hash of Redis 7.4 before its release
	typeHashTTL         = 24
	typeHashTTLPacked   = 25
	typeStream4         = 26 // a stream of Redis 8.6
)

// If the two upper bits of the first byte of a length are set, an encoded string follows. These are
// the values of the six lower bits, which select the encoding.
const (
	encodedInt8  = 0
	encodedInt16 = 1
	encodedInt32 = 2
	encodedLZF   = 3
)

// Each part of a value that a module has saved begins with one of these opcodes.
const (
	moduleEnd    = 0
	moduleSigned = 1
	moduleNumber = 2
	moduleFloat  = 3
	moduleDouble = 4
	moduleString = 5
)
