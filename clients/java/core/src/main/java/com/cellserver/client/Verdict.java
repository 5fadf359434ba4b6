package com.cellserver.client;

import java.util.Set;

/** What is done about an error that the server has answered. */
enum Verdict {
    /** The option onUnavailable decides, and the reply counts as a failure. */
    FAILED,
    /** The option onUnavailable decides, and the reply counts as an answer. */
    UNAVAILABLE,
    /** Likewise, with an error in the log, since a deleted policy or a changed password must not become an outage. */
    MISCONFIGURED,
    /** The error is a fault of the program, or of the configuration at the start. */
    RAISE,
    /** The server is too old for ID. The call is sent once more without one, and so are all later calls. */
    WITHOUT_ID;

    private static final Set<String> AWAY = Set.of(
            "LOADING", "READONLY", "MASTERDOWN", "OOM", "BUSY", "UNAVAILABLE", "MISCONF", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN");
    private static final Set<String> CONFIGURATION = Set.of("NOPOLICY", "NOPERM", "NOAUTH", "WRONGPASS");
    private static final String FULL = "ERR max number of clients reached";
    private static final String SYNTAX = "ERR syntax error";

    /** The verdict on the text of an error. started says that the server has answered the limiter before. */
    static Verdict of(String text, boolean started, boolean hasId) {
        String code = code(text);
        if (text.equals(FULL) || AWAY.contains(code)) {
            return FAILED;
        }
        if (code.equals("IDENDED")) {
            return UNAVAILABLE;
        }
        if (CONFIGURATION.contains(code)) {
            return started ? MISCONFIGURED : RAISE;
        }
        return hasId && (text.equals(SYNTAX) || text.startsWith(SYNTAX + " near 'ID'")) ? WITHOUT_ID : RAISE;
    }

    /** The first word of an error. */
    static String code(String text) {
        int space = text.indexOf(' ');
        return space < 0 ? text : text.substring(0, space);
    }

    /** The exception for an error that is raised. */
    static LimiterException exception(String text) {
        String code = code(text);
        return CONFIGURATION.contains(code) ? new ConfigurationException(text) : new ServerException(code, text);
    }
}
