package com.cellserver.client;

import java.util.List;

/** What the keys of {@link Keys} read of a request over HTTP. */
public interface RequestInfo {
    /** The address of the connection's other end, with or without a port. Null or empty for a Unix socket. */
    String peer();

    /** The lines of a header field in their order. Empty if there is none. */
    List<String> header(String name);

    /** The name of the user that is signed in, or null. */
    String user();
}
