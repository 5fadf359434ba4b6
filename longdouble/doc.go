// Package longdouble reads, adds and writes numbers with a fraction as Redis does. Redis uses C's
// long double, which on x86 has a mantissa of 64 bits and values below 2^16384, and writes numbers by
// "%.17Lf" without the zeros at the end. A *big.Float with a precision of 64 bits has the same mantissa
// and rounds in the same way. Its exponents have a larger range, so the package checks the range itself.
//
// [Parse] reads a number, [Append] writes one, and [AddTexts] is INCRBYFLOAT. The package does not
// handle the scores of sorted sets, which are doubles.
package longdouble
