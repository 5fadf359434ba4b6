package com.cellserver.client.spring;

import com.cellserver.client.HttpAnswer;
import com.cellserver.client.RequestInfo;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.springframework.core.Ordered;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.web.cors.reactive.CorsUtils;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Limits requests in WebFlux applications, without blocking a thread. CORS preflight requests are not limited. */
final class LimitWebFilter implements WebFilter, Ordered {
    private final List<Rule> rules;
    private final int order;

    LimitWebFilter(List<Rule> rules, int order) {
        this.rules = rules;
        this.order = order;
    }

    @Override
    public int getOrder() {
        return order;
    }

    private record Info(ServerWebExchange exchange, String user) implements RequestInfo {
        @Override
        public String peer() {
            var address = exchange.getRequest().getRemoteAddress();
            if (address == null) {
                return null;
            }
            return address.getAddress() == null ? address.getHostString() : address.getAddress().getHostAddress();
        }

        @Override
        public List<String> header(String name) {
            return exchange.getRequest().getHeaders().getOrEmpty(name);
        }
    }

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
        if (CorsUtils.isPreFlightRequest(exchange.getRequest())) {
            return chain.filter(exchange);
        }
        var path = exchange.getRequest().getPath().pathWithinApplication();
        var matching = rules.stream().filter(rule -> rule.matches(path)).toList();
        if (matching.isEmpty()) {
            return chain.filter(exchange);
        }
        return exchange.getPrincipal()
                .map(Principal::getName)
                .map(name -> new Info(exchange, name))
                .defaultIfEmpty(new Info(exchange, null))
                .flatMap(info -> decide(matching, 0, info, new ArrayList<>()))
                // What comes behind is not within the decision: an error of it is no second one.
                .flatMap(answers -> {
                    var last = answers.get(answers.size() - 1);
                    return last.status() == 0 ? goOn(exchange, chain, Rule.merged(answers)) : deny(exchange, last);
                });
    }

    /** The answers of all rules, up to the first denial. */
    private static Mono<List<HttpAnswer>> decide(List<Rule> rules, int i, RequestInfo info, List<HttpAnswer> answers) {
        if (i == rules.size()) {
            return Mono.just(answers.isEmpty() ? List.of(new HttpAnswer(0, Map.of(), "")) : answers);
        }
        var rule = rules.get(i);
        String key = rule.key().of(info);
        if (key == null) {
            return decide(rules, i + 1, info, answers);
        }
        return Mono.fromFuture(rule.limiter().checkAsync(key, rule.cost())).publishOn(Schedulers.parallel()).flatMap(result -> {
            answers.add(HttpAnswer.of(result, rule.limiter().headers()));
            boolean denied = answers.get(answers.size() - 1).status() != 0;
            return denied ? Mono.just(answers) : decide(rules, i + 1, info, answers);
        });
    }

    private static Mono<Void> goOn(ServerWebExchange exchange, WebFilterChain chain, Map<String, String> fields) {
        if (!fields.isEmpty()) {
            var response = exchange.getResponse();
            response.beforeCommit(() -> {
                var status = response.getStatusCode();
                if (HttpAnswer.carries(status == null ? HttpStatus.OK.value() : status.value())) {
                    fields.forEach((name, value) -> response.getHeaders().addIfAbsent(name, value));
                }
                return Mono.empty();
            });
        }
        return chain.filter(exchange);
    }

    private static Mono<Void> deny(ServerWebExchange exchange, HttpAnswer answer) {
        var response = exchange.getResponse();
        response.setRawStatusCode(answer.status());
        answer.fields().forEach(response.getHeaders()::set);
        response.getHeaders().setContentType(MediaType.parseMediaType(HttpAnswer.PROBLEM_TYPE));
        var body = answer.body().getBytes(StandardCharsets.UTF_8);
        response.getHeaders().setContentLength(body.length);
        return response.writeWith(Mono.just(response.bufferFactory().wrap(body)));
    }
}
