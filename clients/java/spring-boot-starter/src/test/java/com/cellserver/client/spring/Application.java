package com.cellserver.client.spring;

import com.cellserver.client.FakeLimiter;
import com.cellserver.client.Key;
import com.cellserver.client.Limiter;
import com.cellserver.client.LimiterOptions;
import com.cellserver.client.OnUnavailable;
import com.cellserver.client.RequestInfo;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.stereotype.Service;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** An application for the tests, whose limiter is a double. It serves servlets and WebFlux. */
@SpringBootApplication
class Application {
    record Order(String user, long units) {}

    @Bean
    FakeLimiter<RequestInfo> fake() {
        LimiterOptions<RequestInfo> options = Limiter.builder();
        options.policy("none").key(request -> null).onUnavailable(OnUnavailable.DENY);
        return new FakeLimiter<>(
                options,
                Map.of("api", List.of("TB 2 1 60"), "chat", List.of("TB 10 1 60"), "tenants", List.of("SW 1 60 FIXED")));
    }

    @Bean
    Key<RequestInfo> tenant() {
        return request -> request.header("X-Tenant").isEmpty() ? null : request.header("X-Tenant").get(0);
    }

    @RestController
    static class Controller {
        private final Orders orders;

        Controller(Orders orders) {
            this.orders = orders;
        }

        @GetMapping({"/api/hello", "/health", "/tenants/hello"})
        String hello() {
            return "hello";
        }

        @GetMapping("/api/moved")
        ResponseEntity<Void> moved() {
            return ResponseEntity.status(HttpStatus.FOUND).header("Location", "/").build();
        }

        @GetMapping("/api/away")
        ResponseEntity<String> away() {
            return ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE).body("away");
        }

        @GetMapping("/api/inner")
        ResponseEntity<String> inner() {
            return ResponseEntity.ok().header("RateLimit", "\"inner\";r=1").body("inner");
        }

        @PostMapping("/orders")
        @RateLimited(policy = "chat", key = "#order.user", cost = "#order.units")
        public String order(@RequestBody Order order) {
            return "ordered";
        }

        @PostMapping("/orders/mono")
        Mono<String> mono(@RequestBody Order order) {
            return orders.mono(order);
        }
    }

    interface Audit {
        @RateLimited(limits = "TB 1 1 60", key = "'audit'")
        String audit();
    }

    @Service
    static class Audited implements Audit {
        @Override
        public String audit() {
            return "audited";
        }
    }

    @Service
    static class Orders {
        @RateLimited(limits = "TB 1 1 60", key = "#usr")
        public void misspelt(String user) {}

        @RateLimited(limits = "TB 1 1 60", key = "#order.user")
        public Mono<String> mono(Order order) {
            return Mono.just("ordered");
        }

        @RateLimited(limits = "TB 1 1 60", key = "'flux'")
        public Flux<String> flux() {
            return Flux.just("a", "b");
        }

        @RateLimited(limits = "TB 1 1 60", key = "'stage'")
        public CompletionStage<String> stage() {
            return CompletableFuture.completedFuture("staged");
        }

        @RateLimited(limits = "TB 1 1 60", key = "#name")
        public String named(String name) {
            return name;
        }

        @RateLimited(limits = "TB 1 1 60", key = "'x'", cost = "-1")
        public void negative() {}
    }
}
