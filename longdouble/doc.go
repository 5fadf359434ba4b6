// Package longdouble reads, adds and writes numbers with a fraction as Redis does. Redis uses C's
// long double, which on x86 has a mantissa of 64 bits and exponents to 2^16384, and writes "%.17Lf"
// without the zeros at the end. A *big.Float of 64 bits is the same number and rounds in the same
// way.
//
// [Parse] and [Append] are the two directions, and [AddTexts] is INCRBYFLOAT. Scores of sorted sets
// are doubles and not here.
package longdouble
