package com.cellserver.client.spring;

import com.cellserver.client.FakeLimiter;
import com.cellserver.client.RequestInfo;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.autoconfigure.web.reactive.AutoConfigureWebTestClient;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.http.MediaType;
import org.springframework.test.web.reactive.server.WebTestClient;

@SpringBootTest(
        classes = Application.class,
        properties = {
            "spring.main.web-application-type=reactive",
            "cellserver.filters[0].policy=api",
            "cellserver.filters[0].paths=/api/**",
            "cellserver.filters[0].key=tenant",
            "cellserver.filters[1].limits=TB 100 1 1h",
            "cellserver.filters[1].key=header:X-Tenant"
        })
@AutoConfigureWebTestClient
class ReactiveTest {
    @Autowired
    private WebTestClient client;

    @Autowired
    private FakeLimiter<RequestInfo> fake;

    @BeforeEach
    void unused() {
        fake.comeBack();
        fake.advance(Duration.ofHours(100));
    }

    private WebTestClient.ResponseSpec get(String tenant, String path) {
        return client.get().uri(path).header("X-Tenant", tenant).exchange();
    }

    @Test
    void fieldsAndDenials() {
        get("a", "/api/hello").expectStatus().isOk().expectHeader().valueEquals("RateLimit", "\"limit\";r=99;t=3600");
        get("a", "/api/inner").expectHeader().valueEquals("RateLimit", "\"inner\";r=1");
        get("a", "/api/hello")
                .expectStatus().isEqualTo(429)
                .expectHeader().valueEquals("Retry-After", "60")
                .expectHeader().contentType("application/problem+json")
                .expectBody().jsonPath("$.violated-policies[0]").isEqualTo("api");
        get("b", "/api/away").expectStatus().isEqualTo(503).expectHeader().doesNotExist("RateLimit");
        get("b", "/api/moved").expectStatus().isFound().expectHeader().doesNotExist("RateLimit");
        client.get().uri("/api/hello").exchange().expectStatus().isOk().expectHeader().doesNotExist("RateLimit");
    }

    @Test
    void aServerThatIsAway() {
        fake.refuse();
        get("a", "/api/hello").expectStatus().isEqualTo(503).expectHeader().valueEquals("Retry-After", "1");
    }

    @Test
    void anAnnotatedMethod() {
        for (int status : new int[] {200, 429}) {
            client.post().uri("/orders/mono").contentType(MediaType.APPLICATION_JSON).bodyValue("{\"user\":\"ann\",\"units\":1}")
                    .exchange().expectStatus().isEqualTo(status);
        }
    }
}
