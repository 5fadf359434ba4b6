package com.cellserver.client;

import io.netty.util.NetUtil;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

/** An address of a client: 4 or 16 bytes. */
record Address(byte[] bytes) {
    private static final byte[] MAPPED = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (byte) 0xff, (byte) 0xff};

    /** A network of proxies. */
    record Network(byte[] bytes, int prefix) {
        /**
         * Reads a network such as 10.0.0.0/8, or a single address.
         *
         * @throws ConfigurationException for another text
         */
        static Network parse(String text) {
            int slash = text.indexOf('/');
            var address = read(slash < 0 ? text : text.substring(0, slash));
            try {
                int bits = address == null ? 0 : address.length * 8;
                int prefix = slash < 0 ? bits : Integer.parseInt(text.substring(slash + 1));
                if (address != null && prefix >= 0 && prefix <= bits) {
                    return new Network(masked(address, prefix), prefix);
                }
            } catch (NumberFormatException notANumber) {
                // The message below is for it, too.
            }
            throw new ConfigurationException("trustedNetworks has '" + text + "' where a network such as 10.0.0.0/8 is wanted");
        }

        boolean contains(Address address) {
            return address.bytes.length == bytes.length && Arrays.equals(masked(address.bytes, prefix), bytes);
        }
    }

    private static byte[] masked(byte[] bytes, int prefix) {
        var out = new byte[bytes.length];
        for (int i = 0; i < out.length; i++) {
            int kept = Math.min(Math.max(prefix - 8 * i, 0), 8);
            out[i] = (byte) (bytes[i] & 0xff << 8 - kept);
        }
        return out;
    }

    /** An address without port, brackets and zone; IPv4 for an IPv4-mapped one. Null for anything else. */
    static Address parse(String text) {
        String host = text;
        if (text.startsWith("[")) {
            int closing = text.indexOf(']');
            if (closing < 0) {
                return null;
            }
            host = text.substring(1, closing);
            String rest = text.substring(closing + 1);
            if (host.indexOf(':') < 0 || !(rest.isEmpty() || isPort(rest))) {
                return null;
            }
        } else if (text.indexOf(':') >= 0 && text.indexOf(':') == text.lastIndexOf(':')) {
            host = text.substring(0, text.indexOf(':'));
            if (!isPort(text.substring(host.length()))) {
                return null;
            }
        }
        int zone = host.indexOf('%');
        if (zone >= 0) {
            if (zone == host.length() - 1 || host.indexOf(':') < 0) {
                return null;
            }
            host = host.substring(0, zone);
        }
        var bytes = read(host);
        if (bytes == null) {
            return null;
        }
        boolean mapped = bytes.length == 16 && Arrays.equals(bytes, 0, MAPPED.length, MAPPED, 0, MAPPED.length);
        return new Address(mapped ? Arrays.copyOfRange(bytes, MAPPED.length, 16) : bytes);
    }

    /** The 4 or 16 bytes of a bare address, or null. Parsers of Java and Netty take more than addresses, such as 198.051.1.1. */
    private static byte[] read(String text) {
        if (text.indexOf(':') < 0) {
            return v4(text);
        }
        int last = text.lastIndexOf(':') + 1;
        String groups = text;
        if (text.indexOf('.', last) >= 0) {
            var tail = v4(text.substring(last));
            if (tail == null) {
                return null;
            }
            groups = text.substring(0, last) + HexFormat.of().formatHex(tail, 0, 2) + ":" + HexFormat.of().formatHex(tail, 2, 4);
        }
        int gap = groups.indexOf("::");
        if (gap < 0) {
            return v6(groups.split(":", -1), new String[0], false);
        }
        String after = groups.substring(gap + 2);
        return v6(parts(groups.substring(0, gap)), parts(after), true);
    }

    private static String[] parts(String groups) {
        return groups.isEmpty() ? new String[0] : groups.split(":", -1);
    }

    private static byte[] v4(String text) {
        var parts = text.split("\\.", -1);
        var out = new byte[4];
        if (parts.length != 4) {
            return null;
        }
        for (int i = 0; i < 4; i++) {
            int n = number(parts[i], 10, 3);
            if (n < 0 || n > 255 || (parts[i].length() > 1 && parts[i].charAt(0) == '0')) {
                return null;
            }
            out[i] = (byte) n;
        }
        return out;
    }

    private static byte[] v6(String[] before, String[] after, boolean gap) {
        int n = before.length + after.length;
        if (gap ? n > 7 : n != 8) {
            return null;
        }
        var out = new byte[16];
        for (int i = 0; i < n; i++) {
            int group = number(i < before.length ? before[i] : after[i - before.length], 16, 4);
            if (group < 0) {
                return null;
            }
            int at = 2 * (i < before.length ? i : 8 - n + i);
            out[at] = (byte) (group >> 8);
            out[at + 1] = (byte) group;
        }
        return out;
    }

    /** The number that a text of 1 to most ASCII digits is, or -1. */
    private static int number(String text, int radix, int most) {
        if (text.isEmpty() || text.length() > most) {
            return -1;
        }
        int n = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            int digit = c < 0x80 ? Character.digit(c, radix) : -1;
            if (digit < 0) {
                return -1;
            }
            n = n * radix + digit;
        }
        return n;
    }

    private static boolean isPort(String text) {
        if (text.length() < 2 || text.charAt(0) != ':') {
            return false;
        }
        int first = 1;
        while (first < text.length() - 1 && text.charAt(first) == '0') {
            first++;
        }
        int port = number(text.substring(first), 10, 5);
        return port >= 0 && port <= 65535;
    }

    /** The key of the address: IPv4 as it is, IPv6 as its network. */
    String key(int v6Prefix) {
        try {
            if (bytes.length == 4) {
                return InetAddress.getByAddress(bytes).getHostAddress();
            }
            return NetUtil.toAddressString(InetAddress.getByAddress(masked(bytes, v6Prefix))) + "/" + v6Prefix;
        } catch (UnknownHostException e) {
            throw new IllegalStateException(e); // 4 and 16 bytes are an address
        }
    }

    /**
     * The address of the client, from the peer's and the lines of X-Forwarded-For. Null if neither tells one.
     *
     * @throws KeyException for a peer without an address, unless there are hops
     */
    static Address client(String peer, List<String> forwarded, int hops, List<Network> networks) {
        var own = parse(peer);
        if (own == null && hops == 0) {
            throw new KeyException("the peer of a request has no address: a Unix socket needs trustedHops");
        }
        var entries = new Entries(forwarded);
        if (hops > 0) {
            String entry = null;
            for (int i = 0; i < hops; i++) {
                entry = entries.next();
            }
            var client = entry == null ? null : parse(entry);
            return client == null ? own : client;
        }
        var client = own;
        while (within(client, networks)) {
            String entry = entries.next();
            if (entry == null) {
                return client;
            }
            client = parse(entry);
            if (client == null) {
                return own;
            }
        }
        return client;
    }

    private static boolean within(Address address, List<Network> networks) {
        for (Network network : networks) {
            if (network.contains(address)) {
                return true;
            }
        }
        return false;
    }

    /** The entries of all lines from the last one on. The header is as long as a client likes: no more is split than needed. */
    private static final class Entries {
        private final List<String> lines;
        private int line;
        private int end;

        Entries(List<String> lines) {
            this.lines = lines;
            this.line = lines.size();
            this.end = -1;
        }

        /** The next entry without blanks, or null. */
        String next() {
            if (end < 0) {
                if (line == 0) {
                    return null;
                }
                line--;
                end = lines.get(line).length();
            }
            String text = lines.get(line);
            int comma = text.lastIndexOf(',', end - 1);
            String entry = text.substring(comma + 1, end);
            end = comma;
            return trimmed(entry);
        }

        private static String trimmed(String entry) {
            int from = 0;
            int to = entry.length();
            while (from < to && isBlank(entry.charAt(from))) {
                from++;
            }
            while (to > from && isBlank(entry.charAt(to - 1))) {
                to--;
            }
            return entry.substring(from, to);
        }

        private static boolean isBlank(char c) {
            return c == ' ' || c == '\t';
        }
    }
}
