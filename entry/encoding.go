package entry

import "strconv"

// Encoding returns the reply to OBJECT ENCODING for a key of kind k: "embstr" for a cell, and the
// mode for the other limiters. It does not give the reply for strings and collections, which
// depends on the value: see [StringEncoding] and package object. For a string Encoding returns
// "embstr", and for a collection the type.
func (k Kind) Encoding() string {
	switch k = k.Plain(); {
	case k == String || k == Cell:
		return "embstr"
	case k.IsWindow():
		return k.WindowMode().String()
	case k.IsBucket():
		return k.BucketMode().String()
	case k.IsLease():
		return k.LeaseMode().String()
	case k == Ban:
		return "ban"
	}
	return k.Type()
}

// embedded is the maximum length in bytes of a string that Redis allocates together with its
// object.
const embedded = 44

// StringEncoding returns the reply to OBJECT ENCODING for a string with the given value, as in
// Redis: "int", "embstr" or "raw".
func StringEncoding(value []byte) string {
	if IsInteger(value) {
		return "int"
	}
	if len(value) <= embedded {
		return "embstr"
	}
	return "raw"
}

// MaxNumber is the maximum number of characters of an int64 in decimal.
const MaxNumber = 20

// IsInteger reports whether b is a decimal int64 in Redis' canonical form: without a plus sign or
// leading zeros.
func IsInteger(b []byte) bool {
	if len(b) > MaxNumber {
		return false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == string(b)
}
