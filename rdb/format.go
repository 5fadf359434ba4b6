package rdb

// A file begins with nine bytes: REDIS and four digits, or VALKEY and three.
const (
	headerSize = 9
	// oldest is the version of Redis 2.8. Older files have no checksum or a format that no
	// server in use writes.
	oldest = 6
	// newest is the version of Redis 8.6. A newer one may have given a byte another meaning.
	newest = 13
	// valkeyVersion is the version of Valkey 9. Before, Valkey wrote version 11 of Redis.
	valkeyVersion = 80
)

// Opcodes are bytes in the place of the type of a value.
const (
	opSlotImportOrMeta = 243 // Valkey 9: import of slots; Redis 8.6: metadata of modules for a key
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

// The types of values. 22 has different meanings in Redis and in Valkey.
const (
	typeString          = 0
	typeList            = 1
	typeSet             = 2
	typeSortedSetText   = 3 // scores are text
	typeHash            = 4
	typeSortedSet       = 5 // scores are binary
	typeModule          = 7
	typeHashZipmap      = 9
	typeListZiplist     = 10
	typeSetIntset       = 11
	typeSortedZiplist   = 12
	typeHashZiplist     = 13
	typeListQuick       = 14 // nodes are ziplists
	typeStream          = 15
	typeHashListpack    = 16
	typeSortedListpack  = 17
	typeListQuick2      = 18 // nodes are listpacks, or one long element
	typeStream2         = 19
	typeSetListpack     = 20
	typeStream3         = 21
	typeHashTTLEarly    = 22 // Redis 7.4 before its release; in Valkey 9 typeHashTTLValkey
	typeHashTTLValkey   = 22
	typeHashTTLPackedRC = 23 // Redis 7.4 before its release
	typeHashTTL         = 24
	typeHashTTLPacked   = 25
	typeStream4         = 26 // Redis 8.6
)

// The meaning of the six lower bits of a length's first byte if its two upper bits are set: the
// string is encoded.
const (
	encodedInt8  = 0
	encodedInt16 = 1
	encodedInt32 = 2
	encodedLZF   = 3
)

// The parts of a value of a module.
const (
	moduleEnd    = 0
	moduleSigned = 1
	moduleNumber = 2
	moduleFloat  = 3
	moduleDouble = 4
	moduleString = 5
)
