package com.cellserver.client.spring;

import com.cellserver.client.HeaderStyle;
import com.cellserver.client.OnUnavailable;
import java.time.Duration;
import java.util.List;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The properties cellserver.*.
 *
 * @param url the server, as redis://user:password@host:6379
 * @param onUnavailable what decides calls that the server does not decide in time; it has no default
 * @param instances how many processes share the limits; needed by LOCAL
 * @param deadline the time for everything that a check waits for, 20 ms to 1 s
 * @param denialCache for how long a denial is repeated from memory at most; 0 is off
 * @param retry whether a call whose connection breaks is sent once more, with an ID
 * @param headers which header fields answers have
 * @param trustedHops the number of proxies that append to X-Forwarded-For, for the key ip
 * @param trustedNetworks the networks of such proxies, in place of their number
 * @param v6Prefix the bits, 48 to 64, that one user has of an IPv6 address
 * @param order the place of the filter among others; 0 is behind Spring Security
 * @param filters the limits of requests
 */
@ConfigurationProperties("cellserver")
public record CellserverProperties(
        String url,
        OnUnavailable onUnavailable,
        Integer instances,
        @DefaultValue("50ms") Duration deadline,
        @DefaultValue("1s") Duration denialCache,
        @DefaultValue("false") boolean retry,
        @DefaultValue("draft") HeaderStyle headers,
        @DefaultValue("0") int trustedHops,
        @DefaultValue List<String> trustedNetworks,
        @DefaultValue("64") int v6Prefix,
        @DefaultValue("0") int order,
        @DefaultValue List<Filter> filters) {

    /**
     * The limits of some requests.
     *
     * @param policy a policy of the server, or with limits a name for them
     * @param limits clauses such as "TB 200 100 1", in place of a policy
     * @param paths patterns of paths, such as /api/**
     * @param except patterns of paths that are not limited, such as health checks
     * @param key ip, user, user-or-ip, header:NAME, or the name of a bean that is a {@code Key<RequestInfo>}
     * @param cost the units that each request takes, 0 or more
     */
    public record Filter(
            @DefaultValue("") String policy,
            @DefaultValue List<String> limits,
            @DefaultValue("/**") List<String> paths,
            @DefaultValue List<String> except,
            @DefaultValue("ip") String key,
            @DefaultValue("1") long cost) {}

}
