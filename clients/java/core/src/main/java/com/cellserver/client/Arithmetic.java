package com.cellserver.client;

import java.math.BigInteger;

/** Whole numbers that end at the bounds of long in the place of overflowing. */
final class Arithmetic {
    private Arithmetic() {}

    static long add(long a, long b) {
        long sum = a + b;
        return ((a ^ sum) & (b ^ sum)) < 0 ? (a < 0 ? Long.MIN_VALUE : Long.MAX_VALUE) : sum;
    }

    static long multiply(long a, long b) {
        long low = a * b;
        if (Math.multiplyHigh(a, b) == low >> 63) {
            return low;
        }
        return (a < 0) == (b < 0) ? Long.MAX_VALUE : Long.MIN_VALUE;
    }

    static long ceil(long a, long b) {
        return -Math.floorDiv(-a, b);
    }

    /** a x b / c, rounded down. The result fits into a long if b is at most c. */
    static long share(long a, long b, long c) {
        long low = a * b;
        if (Math.multiplyHigh(a, b) == low >> 63) {
            return Math.floorDiv(low, c);
        }
        return BigInteger.valueOf(a).multiply(BigInteger.valueOf(b)).divide(BigInteger.valueOf(c)).longValue();
    }

    /** a x b / c, rounded up, for positive numbers. The result fits into a long if a is at most c. */
    static long shareUp(long a, long b, long c) {
        long low = a * b;
        if (Math.multiplyHigh(a, b) == low >> 63) {
            return ceil(low, c);
        }
        var whole = BigInteger.valueOf(a).multiply(BigInteger.valueOf(b)).divideAndRemainder(BigInteger.valueOf(c));
        return whole[0].longValue() + (whole[1].signum() > 0 ? 1 : 0);
    }
}
