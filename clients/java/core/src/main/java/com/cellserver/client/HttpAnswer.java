package com.cellserver.client;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * What HTTP makes of a result, after draft-ietf-httpapi-ratelimit-headers-11.
 *
 * @param status 429 or 503, or 0 for a request that goes on
 * @param fields the header fields, in the spelling of the draft; those of a request that goes on are for its answer
 * @param body the problem of a denial in JSON, or empty
 */
public record HttpAnswer(int status, Map<String, String> fields, String body) {
    /** The media type of the body. */
    public static final String PROBLEM_TYPE = "application/problem+json";

    private static final String RETRY_AFTER = "Retry-After";
    private static final long MAX_INTEGER = 999_999_999_999_999L;
    private static final String TYPES = "https://iana.org/assignments/http-problem-types#";
    private static final HttpAnswer GO_ON = new HttpAnswer(0, Map.of(), "");
    private static final HttpAnswer AWAY = new HttpAnswer(
            503, Map.of(RETRY_AFTER, "1"), "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503}");

    /**
     * The answer for a result. Only decisions of the server have fields about the limit, since a local one knows only the
     * share of this instance.
     */
    public static HttpAnswer of(Result result, HeaderStyle style) {
        boolean server = result.source() == Source.SERVER || result.source() == Source.CACHE;
        if (result.allowed()) {
            return server && style != HeaderStyle.NONE ? new HttpAnswer(0, fields(result, style), "") : GO_ON;
        }
        if (result.source() == Source.UNAVAILABLE) {
            return AWAY;
        }
        var fields = fields(result, style);
        if (!server) {
            fields.keySet().retainAll(List.of(RETRY_AFTER));
        }
        return new HttpAnswer(429, fields, problem(result, 429));
    }

    /** Whether the answer with this status of an application has the fields of a request that went on. */
    public static boolean carries(int status) {
        return status != 503 && (status < 300 || status >= 400);
    }

    /** The header fields of a decision. */
    static Map<String, String> fields(Result result, HeaderStyle style) {
        var out = new LinkedHashMap<String, String>();
        if (style == HeaderStyle.NONE) {
            return out;
        }
        if (style != HeaderStyle.X) {
            draft(result, out);
        }
        if (style != HeaderStyle.DRAFT) {
            x(result, out);
        }
        long wait = retryAfter(result);
        if (wait > 0) {
            out.put(RETRY_AFTER, Long.toString(wait));
        }
        return out;
    }

    /** Retry-After in seconds, at least 1. 0 if the call has passed or never passes. */
    private static long retryAfter(Result result) {
        long millis = result.whole().retryMillis();
        if (result.allowed() || millis < 0) {
            return 0;
        }
        for (ClauseResult clause : result.policies()) {
            if (clause.denies() && clause.retryMillis() < 0) {
                return 0;
            }
            if (clause.denies()) {
                millis = Math.max(millis, clause.retryMillis());
            }
        }
        return Math.max(1, seconds(millis));
    }

    private static void draft(Result result, Map<String, String> out) {
        var policies = new StringBuilder();
        var limits = new StringBuilder();
        for (int i = 0; i < result.policies().size(); i++) {
            var clause = result.policies().get(i);
            if (!clause.unlimited()) {
                item(policies, result.policy(), i).append(";q=").append(integer(clause.limit()));
                if (clause.concurrent()) {
                    policies.append(";qu=\"concurrent-requests\"");
                }
                if (clause.windowMillis() > 0) {
                    policies.append(";w=").append(integer(seconds(clause.windowMillis())));
                }
            }
            if (!clause.unlimited() || clause.denies()) {
                item(limits, result.policy(), i).append(";r=").append(integer(clause.remaining()));
                long millis = result.allowed() ? clause.resetMillis() : clause.denies() ? clause.retryMillis() : 0;
                if (seconds(millis) > 0) {
                    limits.append(";t=").append(integer(seconds(millis)));
                }
            }
        }
        if (!policies.isEmpty()) {
            out.put("RateLimit-Policy", policies.toString());
        }
        if (!limits.isEmpty()) {
            out.put("RateLimit", limits.toString());
        }
    }

    private static StringBuilder item(StringBuilder list, String policy, int i) {
        return list.append(list.isEmpty() ? "" : ", ").append('"').append(name(policy, i)).append('"');
    }

    private static String name(String policy, int i) {
        return i == 0 ? policy : policy + "#" + (i + 1);
    }

    private static void x(Result result, Map<String, String> out) {
        var whole = result.whole();
        if (!whole.unlimited()) {
            out.put("X-RateLimit-Limit", Long.toString(whole.limit()));
        } else if (result.allowed()) {
            return;
        }
        out.put("X-RateLimit-Remaining", Long.toString(whole.remaining()));
        long reset = result.allowed() ? whole.resetMillis() : whole.retryMillis();
        if (reset >= 0) {
            out.put("X-RateLimit-Reset", Long.toString(seconds(reset)));
        }
    }

    /** The body of a denial. Names of policies have no character that JSON escapes. */
    static String problem(Result result, int status) {
        // A block is one of the policy, not of its clauses.
        String violated = result.blocked()
                ? quoted(result.policy())
                : IntStream.range(0, result.policies().size())
                        .filter(i -> result.policies().get(i).denies())
                        .mapToObj(i -> quoted(name(result.policy(), i)))
                        .collect(Collectors.joining(","));
        String type = result.blocked() ? "abnormal-usage-detected" : "quota-exceeded";
        String title = result.blocked()
                ? "Request not satisfied due to detection of abnormal request pattern"
                : "Request cannot be satisfied as assigned quota has been exceeded";
        String detail = result.never()
                ? ",\"detail\":\"The cost of the request exceeds the limit of " + result.limit() + ".\""
                : "";
        return "{\"type\":" + quoted(TYPES + type) + ",\"title\":" + quoted(title) + ",\"status\":" + status
                + ",\"violated-policies\":[" + violated + "]" + detail + "}";
    }

    private static String quoted(String text) {
        return '"' + text + '"';
    }

    private static long seconds(long millis) {
        return millis > 0 ? Arithmetic.ceil(millis, 1000) : 0;
    }

    private static long integer(long n) {
        return Math.min(Math.max(n, 0), MAX_INTEGER);
    }
}
