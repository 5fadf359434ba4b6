package com.cellserver.client;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;

/** Keys of requests: by address, user and header. */
public final class Keys {
    /** The length in bytes of UTF-8 beyond which a key is replaced by its hash. */
    public static final int MAX_KEY_BYTES = 128;

    /** The key of all clients whose address neither the peer nor the header tells. */
    static final String UNKNOWN = "unknown";

    private static final String FORWARDED = "X-Forwarded-For";
    private static final System.Logger LOG = System.getLogger("com.cellserver.client");
    private static final AtomicBoolean WARNED = new AtomicBoolean();

    private Keys() {}

    /**
     * The peer's address; no header is believed. The first request with X-Forwarded-For is a warning in the log. Behind a
     * proxy, use {@link #trustedHops} or {@link #trustedNetworks} without Spring's ForwardedHeaderFilter: that filter takes the
     * first address of the header, which a client writes unless the outermost proxy overwrites the header.
     */
    public static Ip ip() {
        return new Ip();
    }

    /** What trusts proxies before it makes keys of addresses. */
    public static final class Ip implements Key<RequestInfo> {
        private final int hops;
        private final List<Address.Network> networks;
        private final int prefix;

        private Ip() {
            this(0, List.of(), 64);
        }

        private Ip(int hops, List<Address.Network> networks, int prefix) {
            if (prefix < 48 || prefix > 64) {
                throw new ConfigurationException("the prefix of IPv6 is 48 to 64 bits, not " + prefix);
            }
            this.hops = hops;
            this.networks = networks;
            this.prefix = prefix;
        }

        /** The same key with another number of bits, 48 to 64, that one user has of an IPv6 address: 64 by default. */
        public Ip v6Prefix(int bits) {
            return new Ip(hops, networks, bits);
        }

        @Override
        public String of(RequestInfo request) {
            var lines = request.header(FORWARDED);
            if (!lines.isEmpty() && hops == 0 && networks.isEmpty() && WARNED.compareAndSet(false, true)) {
                LOG.log(
                        System.Logger.Level.WARNING,
                        "a request has X-Forwarded-For, which ip() does not believe: if there is a proxy, all its clients share"
                                + " one key. Use trustedHops or trustedNetworks");
            }
            return key(request.peer() == null ? "" : request.peer(), lines);
        }

        String key(String peer, List<String> lines) {
            var client = Address.client(peer, lines, hops, networks);
            return client == null ? UNKNOWN : client.key(prefix);
        }
    }

    /** The client's address behind a number of proxies, 1 or more, each of which appends to X-Forwarded-For. */
    public static Ip trustedHops(int hops) {
        if (hops < 1) {
            throw new ConfigurationException("trustedHops is 1 or more, not " + hops);
        }
        return new Ip(hops, List.of(), 64);
    }

    /** The client's address behind proxies of these networks, such as 10.0.0.0/8, which append to X-Forwarded-For. */
    public static Ip trustedNetworks(String... networks) {
        if (networks.length == 0) {
            throw new ConfigurationException("trustedNetworks has at least one network");
        }
        return new Ip(0, Arrays.stream(networks).map(Address.Network::parse).toList(), 64);
    }

    /** The user that is signed in. A request without one is not limited: see first. */
    public static Key<RequestInfo> user() {
        return request -> request.user() == null ? null : bounded("user:" + request.user());
    }

    /**
     * The hash of the first line of a header field, so that a token is in no list of keys and in no log. A request without
     * the field is not limited: see first.
     */
    public static Key<RequestInfo> header(String name) {
        return request -> {
            var lines = request.header(name);
            return lines.isEmpty() ? null : hashed(lines.get(0));
        };
    }

    /** The first line of a header field as it is. A request without the field is not limited. */
    public static Key<RequestInfo> plainHeader(String name) {
        return request -> {
            var lines = request.header(name);
            return lines.isEmpty() ? null : bounded(lines.get(0));
        };
    }

    /** All of several keys, joined by "|". Null if one of them is null. */
    @SafeVarargs
    public static <R> Key<R> combine(Key<? super R>... keys) {
        var all = keys.clone();
        return request -> {
            var parts = new String[all.length];
            for (int i = 0; i < parts.length; i++) {
                parts[i] = all[i].of(request);
                if (parts[i] == null) {
                    return null;
                }
            }
            return bounded(joined(List.of(parts)));
        };
    }

    /** The first of several keys that is not null: first(user(), ip()) limits anonymous requests by address. */
    @SafeVarargs
    public static <R> Key<R> first(Key<? super R>... keys) {
        var all = keys.clone();
        return request -> {
            for (Key<? super R> key : all) {
                String found = key.of(request);
                if (found != null) {
                    return found;
                }
            }
            return null;
        };
    }

    /** Parts separated by "|". No two lists of parts are joined to the same text. */
    static String joined(List<String> parts) {
        return parts.stream()
                .map(part -> part.replace("%", "%25").replace("|", "%7C"))
                .collect(Collectors.joining("|"));
    }

    /** The key itself, or its hash if it has over 128 bytes, or is none of UTF-8 since it has half a surrogate pair. */
    static String bounded(String text) {
        if (text.length() * 3 <= MAX_KEY_BYTES && isAscii(text)) {
            return text;
        }
        boolean valid = StandardCharsets.UTF_8.newEncoder().canEncode(text);
        return valid && text.getBytes(StandardCharsets.UTF_8).length <= MAX_KEY_BYTES ? text : hashed(text);
    }

    /** The text itself, or its hash if it is none of UTF-8. */
    static String encodable(String text) {
        return isAscii(text) || StandardCharsets.UTF_8.newEncoder().canEncode(text) ? text : hashed(text);
    }

    private static boolean isAscii(String text) {
        for (int i = 0; i < text.length(); i++) {
            if (text.charAt(i) > 0x7f) {
                return false;
            }
        }
        return true;
    }

    /** The first 16 bytes of SHA-256 in hexadecimal: what the server sees of a secret or long key. */
    static String hashed(String text) {
        try {
            var digest = MessageDigest.getInstance("SHA-256").digest(bytes(text));
            return HexFormat.of().formatHex(digest, 0, 16);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e); // every Java has SHA-256
        }
    }

    /** The text in UTF-8, in which half a surrogate pair is three bytes, so that no two texts are the same. */
    private static byte[] bytes(String text) {
        var out = new ByteArrayOutputStream(text.length());
        text.codePoints().forEach(point -> {
            if (point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE) {
                out.write(0xe0 | point >> 12);
                out.write(0x80 | point >> 6 & 0x3f);
                out.write(0x80 | point & 0x3f);
            } else {
                out.writeBytes(Character.toString(point).getBytes(StandardCharsets.UTF_8));
            }
        });
        return out.toByteArray();
    }
}
