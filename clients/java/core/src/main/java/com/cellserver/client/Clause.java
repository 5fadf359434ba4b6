package com.cellserver.client;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * One limit. A number that a kind does not have is 0.
 *
 * @param kind TB, SW, CL, CC or NONE, which is no limit
 * @param limit units that a key has at most: capacity, limit of a window, max_burst + 1, places
 * @param count units that come back in each period (TB and CL)
 * @param period nanoseconds: the period of TB and CL, the window of SW, the lease of CC; 0 for a window of the calendar
 * @param calendar DAY, WEEK, MONTH or YEAR in the place of a window, or empty
 * @param options the words behind the numbers without CALLS, as the server takes them with MS
 * @param calls whether each call counts as one unit, whatever its cost
 */
record Clause(String kind, long limit, long count, long period, String calendar, List<String> options, boolean calls) {

    static final long NANOS_PER_MILLI = 1_000_000L;
    private static final long NANOS_PER_SECOND = 1_000_000_000L;

    private static final Map<String, Long> SUFFIXES =
            Map.of("ms", NANOS_PER_MILLI, "s", NANOS_PER_SECOND, "m", 60 * NANOS_PER_SECOND,
                    "h", 3600 * NANOS_PER_SECOND, "d", 86400 * NANOS_PER_SECOND);
    private static final Pattern DURATION = Pattern.compile("([0-9]+)(ms|s|m|h|d)?");
    private static final Pattern INTEGER = Pattern.compile("[-+]?[0-9]+");

    // The lengths in days of windows of the calendar, as a limiter in the process has them.
    private static final Map<String, Long> CALENDAR_DAYS = Map.of("DAY", 1L, "WEEK", 7L, "MONTH", 30L, "YEAR", 365L);

    // The number of required numbers of each kind, its time included.
    private static final Map<String, Integer> NUMBERS = Map.of("TB", 3, "SW", 2, "CL", 3, "CC", 2, "NONE", 0);

    /** The length of the window in milliseconds, rounded up; 0 if the clause has none. */
    long windowMillis() {
        return kind.equals("SW") ? period / NANOS_PER_MILLI + (period % NANOS_PER_MILLI > 0 ? 1 : 0) : 0;
    }

    boolean concurrent() {
        return kind.equals("CC");
    }

    /** The words of the clause in a command with MS and a cost. */
    List<String> words(long cost) {
        return words(Long.toString(units(cost)));
    }

    private List<String> words(String cost) {
        if (kind.equals("NONE")) {
            return List.of(kind);
        }
        var words = new ArrayList<String>();
        words.add(kind);
        words.add(Long.toString(kind.equals("CL") ? limit - 1 : limit));
        if (kind.equals("TB") || kind.equals("CL")) {
            words.add(Long.toString(count));
        }
        words.add(calendar.isEmpty() ? Long.toString(period / NANOS_PER_MILLI) : calendar);
        if (!cost.isEmpty() && !concurrent()) {
            words.add(cost);
        }
        words.addAll(options);
        return words;
    }

    /** What a call of a cost takes of the clause. */
    long units(long cost) {
        return calls ? Math.max(0, Math.min(cost, 1)) : cost;
    }

    /** The part of the limit that one of several instances decides by itself. */
    Clause share(int instances) {
        return new Clause(kind, share(limit, instances), share(count, instances), period, calendar, options, calls);
    }

    private static long share(long units, int instances) {
        return units > 0 && instances > 1 ? Math.max(1, units / instances) : units;
    }

    /**
     * The clause that the process decides in the place of this one. A bucket becomes GREEDY. A window becomes FIXED if it
     * is, or if it is one of the calendar, which becomes 1, 7, 30 or 365 days; otherwise it becomes COUNTER.
     */
    Clause local() {
        if (!kind.equals("SW")) {
            return new Clause(kind, limit, count, period, calendar, List.of(), calls);
        }
        String mode = fixed() || !calendar.isEmpty() ? "FIXED" : "COUNTER";
        long length = calendar.isEmpty() ? period : CALENDAR_DAYS.get(calendar) * SUFFIXES.get("d");
        return new Clause(kind, limit, count, length, "", List.of(mode), calls);
    }

    boolean fixed() {
        return options.contains("FIXED");
    }

    /** Whether the limiter in the process decides otherwise than the server. */
    boolean approximated() {
        return !equals(local()) && !(kind.equals("SW") && options.isEmpty() && calendar.isEmpty());
    }

    /** The limit as answers have it. */
    long mostUnits() {
        return kind.equals("NONE") ? ClauseResult.UNLIMITED : limit;
    }

    @Override
    public String toString() {
        var words = new ArrayList<>(words(""));
        if (period > 0 && calendar.isEmpty()) {
            int last = NUMBERS.get(kind);
            words.set(last, words.get(last) + "ms");
        }
        if (calls) {
            words.add("CALLS");
        }
        return String.join(" ", words);
    }

    /**
     * Reads clauses such as "TB 200 100 1" or "SW 1000 1h FIXED". A text may have several clauses. Times have a suffix (ms,
     * s, m, h, d), or are seconds, or milliseconds with millis. The server checks the options.
     *
     * @throws ConfigurationException for another text
     */
    static List<Clause> parse(Iterable<String> limits, boolean millis) {
        var groups = new ArrayList<List<String>>();
        for (String word : String.join(" ", limits).trim().split("\\s+")) {
            if (NUMBERS.containsKey(word.toUpperCase(Locale.ROOT))) {
                groups.add(new ArrayList<>(List.of(word)));
            } else if (!groups.isEmpty()) {
                groups.get(groups.size() - 1).add(word);
            } else {
                throw new ConfigurationException("limits begin with TB, SW, CL, CC or NONE, not with '" + word + "'");
            }
        }
        long unit = millis ? NANOS_PER_MILLI : NANOS_PER_SECOND;
        return groups.stream().map(words -> clause(words, unit)).toList();
    }

    static List<Clause> parse(Iterable<String> limits) {
        return parse(limits, false);
    }

    private static Clause clause(List<String> words, long unit) {
        String text = String.join(" ", words);
        String kind = words.get(0).toUpperCase(Locale.ROOT);
        int n = NUMBERS.get(kind);
        if (kind.equals("NONE") && words.size() == 1) {
            return new Clause(kind, 0, 0, 0, "", List.of(), false);
        }
        if (kind.equals("NONE") || words.size() <= n) {
            throw new ConfigurationException("'" + text + "' does not have the " + n + " numbers of " + kind);
        }
        boolean cell = kind.equals("CL");
        long limit = number(words.get(1), text, cell ? -1 : 0);
        long count = n == 3 ? number(words.get(2), text, 1) : 0;
        String time = words.get(n).toUpperCase(Locale.ROOT);
        boolean calendar = kind.equals("SW") && CALENDAR_DAYS.containsKey(time);
        var options = options(words.subList(n + 1, words.size()), unit);
        boolean calls = !options.isEmpty() && options.get(options.size() - 1).equals("CALLS");
        return new Clause(
                kind,
                cell && limit < Long.MAX_VALUE ? limit + 1 : limit,
                count,
                calendar ? 0 : duration(words.get(n), text, unit),
                calendar ? time : "",
                List.copyOf(calls ? options.subList(0, options.size() - 1) : options),
                calls);
    }

    /** The words behind the numbers, upper case but for a zone. The instant of ANCHOR becomes milliseconds. */
    private static List<String> options(List<String> words, long unit) {
        var out = new ArrayList<String>();
        String before = "";
        for (String word : words) {
            String upper = word.toUpperCase(Locale.ROOT);
            if (before.equals("ANCHOR") && INTEGER.matcher(word).matches() && word.length() < 16) {
                out.add(Long.toString(Long.parseLong(word) * (unit / NANOS_PER_MILLI)));
            } else {
                out.add(before.equals("ZONE") ? word : upper);
            }
            before = upper;
        }
        return out;
    }

    private static long number(String word, String text, long least) {
        try {
            long n = INTEGER.matcher(word).matches() ? Long.parseLong(word) : least - 1;
            if (n >= least) {
                return n;
            }
        } catch (NumberFormatException tooLarge) {
            // The message below is for it, too.
        }
        throw new ConfigurationException(
                "'" + text + "' has '" + word + "' where a whole number of at least " + least + " is wanted");
    }

    private static long duration(String word, String text, long unit) {
        var match = DURATION.matcher(word.toLowerCase(Locale.ROOT));
        if (match.matches()) {
            try {
                long nanos = Math.multiplyExact(
                        Long.parseLong(match.group(1)), match.group(2) == null ? unit : SUFFIXES.get(match.group(2)));
                if (nanos > 0) {
                    return nanos;
                }
            } catch (NumberFormatException | ArithmeticException tooLong) {
                // The message below is for it, too.
            }
        }
        throw new ConfigurationException("'" + text + "' has '" + word + "' where a time such as 60, 1500ms or 1h is wanted");
    }
}
