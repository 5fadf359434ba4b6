package com.cellserver.client;

import java.time.Duration;

/**
 * When a breaker opens and for how long.
 *
 * @param inRow failures in a row that open it, 1 or more
 * @param window calls that are looked back at; half of them failed open it; 1 or more
 * @param pause the time without calls, plus or minus jitter
 * @param jitter the part of the pause by which it varies, 0 to 1
 */
public record BreakerOptions(int inRow, int window, Duration pause, double jitter) {
    /** 5 failures in a row, or half of the last 20 calls; 1 s plus or minus 20 %. */
    public static final BreakerOptions DEFAULT = new BreakerOptions(5, 20, Duration.ofSeconds(1), 0.2);

    /** Checks the bounds. */
    public BreakerOptions {
        if (inRow < 1 || window < 1 || pause.isNegative() || !(jitter >= 0 && jitter <= 1)) {
            throw new ConfigurationException("breaker: inRow and window are 1 or more, and jitter is 0 to 1");
        }
    }
}
