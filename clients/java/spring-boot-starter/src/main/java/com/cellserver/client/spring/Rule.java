package com.cellserver.client.spring;

import com.cellserver.client.ConfigurationException;
import com.cellserver.client.HttpAnswer;
import com.cellserver.client.Key;
import com.cellserver.client.Keys;
import com.cellserver.client.Limiter;
import com.cellserver.client.RequestInfo;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/** One of the limits in cellserver.filters. */
record Rule(Limiter<RequestInfo> limiter, Key<RequestInfo> key, long cost, List<PathPattern> paths, List<PathPattern> except) {

    static Rule of(
            CellserverProperties.Filter filter, CellserverProperties properties, CellserverLimiters limiters, BeanFactory beans) {
        if (filter.cost() < 0) {
            throw new ConfigurationException("cellserver.filters.cost is 0 or more, not " + filter.cost());
        }
        var limiter = limiters.get(filter.policy(), filter.limits());
        return new Rule(
                limiter, key(filter.key(), properties, beans), filter.cost(), patterns(filter.paths()), patterns(filter.except()));
    }

    private static List<PathPattern> patterns(List<String> texts) {
        return texts.stream().map(PathPatternParser.defaultInstance::parse).toList();
    }

    @SuppressWarnings("unchecked")
    private static Key<RequestInfo> key(String name, CellserverProperties properties, BeanFactory beans) {
        if (name.startsWith("header:")) {
            return Keys.header(name.substring("header:".length()));
        }
        return switch (name) {
            case "ip" -> ip(properties);
            case "user" -> Keys.user();
            case "user-or-ip" -> Keys.first(Keys.user(), ip(properties));
            default -> {
                if (!beans.containsBean(name)) {
                    throw new ConfigurationException(
                            "cellserver.filters.key is ip, user, user-or-ip, header:NAME or the name of a bean, not " + name);
                }
                yield beans.getBean(name, Key.class);
            }
        };
    }

    private static Key<RequestInfo> ip(CellserverProperties properties) {
        if (properties.trustedHops() > 0 && !properties.trustedNetworks().isEmpty()) {
            throw new ConfigurationException("cellserver.trusted-hops excludes cellserver.trusted-networks");
        }
        var ip = properties.trustedHops() != 0
                ? Keys.trustedHops(properties.trustedHops())
                : properties.trustedNetworks().isEmpty()
                        ? Keys.ip()
                        : Keys.trustedNetworks(properties.trustedNetworks().toArray(String[]::new));
        return ip.v6Prefix(properties.v6Prefix());
    }

    boolean matches(PathContainer path) {
        return paths.stream().anyMatch(pattern -> pattern.matches(path)) && except.stream().noneMatch(pattern -> pattern.matches(path));
    }

    /** The fields of several answers. Those of the later limits win, as an inner limiter does. */
    static Map<String, String> merged(List<HttpAnswer> answers) {
        var fields = new LinkedHashMap<String, String>();
        answers.forEach(answer -> fields.putAll(answer.fields()));
        return fields;
    }
}
