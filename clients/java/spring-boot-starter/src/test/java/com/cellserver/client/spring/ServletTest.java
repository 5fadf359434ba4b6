package com.cellserver.client.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.get;
import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.options;
import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.post;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.content;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.header;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.jsonPath;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.status;

import com.cellserver.client.ConfigurationException;
import com.cellserver.client.FakeLimiter;
import com.cellserver.client.RequestInfo;
import java.time.Duration;
import java.util.ArrayList;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.autoconfigure.web.servlet.AutoConfigureMockMvc;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.http.MediaType;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.request.MockHttpServletRequestBuilder;

@SpringBootTest(
        classes = Application.class,
        properties = {
            "spring.main.web-application-type=servlet",
            "cellserver.trusted-hops=1",
            "cellserver.filters[0].policy=api",
            "cellserver.filters[0].paths=/api/**,/health",
            "cellserver.filters[0].except=/health",
            "cellserver.filters[1].policy=tenants",
            "cellserver.filters[1].paths=/tenants/**",
            "cellserver.filters[1].key=tenant"
        })
@AutoConfigureMockMvc
class ServletTest {
    @Autowired
    private MockMvc mvc;

    @Autowired
    private FakeLimiter<RequestInfo> fake;

    @Autowired
    private Application.Orders orders;

    @Autowired
    private Application.Audit audit;

    @BeforeEach
    void unused() {
        fake.comeBack();
        fake.advance(Duration.ofHours(1));
    }

    private static MockHttpServletRequestBuilder from(String forwarded, String path) {
        return get(path).header("X-Forwarded-For", forwarded);
    }

    @Test
    void fieldsAndDenials() throws Exception {
        mvc.perform(from("198.51.100.7", "/api/hello"))
                .andExpect(status().isOk())
                .andExpect(header().string("RateLimit", "\"api\";r=1;t=60"))
                .andExpect(header().string("RateLimit-Policy", "\"api\";q=2"));
        mvc.perform(from("6.6.6.6, 198.51.100.7", "/api/inner"))
                .andExpect(header().string("RateLimit", "\"inner\";r=1"))
                .andExpect(header().string("RateLimit-Policy", "\"api\";q=2"));
        mvc.perform(from("198.51.100.7", "/api/hello"))
                .andExpect(status().isTooManyRequests())
                .andExpect(header().string("Retry-After", "60"))
                .andExpect(content().contentType("application/problem+json"))
                .andExpect(jsonPath("$.violated-policies[0]").value("api"));
        mvc.perform(from("198.51.100.8", "/api/hello")).andExpect(status().isOk());
    }

    @Test
    void answersWithoutFields() throws Exception {
        mvc.perform(from("198.51.100.7", "/api/moved")).andExpect(status().isFound()).andExpect(header().doesNotExist("RateLimit"));
        mvc.perform(from("198.51.100.7", "/api/away"))
                .andExpect(status().isServiceUnavailable())
                .andExpect(header().doesNotExist("RateLimit"));
    }

    @Test
    void whatIsNotLimited() throws Exception {
        int before = fake.calls().size();
        mvc.perform(get("/health")).andExpect(status().isOk()).andExpect(header().doesNotExist("RateLimit"));
        mvc.perform(get("/tenants/hello")).andExpect(status().isOk()).andExpect(header().doesNotExist("RateLimit"));
        mvc.perform(options("/api/hello").header("Origin", "https://a.example").header("Access-Control-Request-Method", "GET"));
        assertEquals(before, fake.calls().size());
    }

    @Test
    void aPathIsMatchedAsTheContainerRoutesIt() throws Exception {
        for (String raw : new String[] {"//api/hello", "/health/../api/hello", "/%61pi/hello", "/api;x=1/hello"}) {
            fake.advance(Duration.ofHours(1));
            int before = fake.calls().size();
            mvc.perform(from("198.51.100.9", "/api/hello").with(request -> {
                request.setRequestURI(raw);
                request.setServletPath("/api/hello");
                request.setPathInfo(null);
                return request;
            }));
            assertEquals(before + 1, fake.calls().size(), raw);
        }
    }

    @Test
    void aKeyThatIsABean() throws Exception {
        mvc.perform(get("/tenants/hello").header("X-Tenant", "a")).andExpect(status().isOk());
        mvc.perform(get("/tenants/hello").header("X-Tenant", "a")).andExpect(status().isTooManyRequests());
        mvc.perform(get("/tenants/hello").header("X-Tenant", "b")).andExpect(status().isOk());
    }

    @Test
    void aServerThatIsAway() throws Exception {
        fake.refuse();
        mvc.perform(from("198.51.100.7", "/api/hello"))
                .andExpect(status().isServiceUnavailable())
                .andExpect(header().string("Retry-After", "1"))
                .andExpect(header().doesNotExist("RateLimit"));
    }

    @Test
    void anAnnotatedController() throws Exception {
        var order = post("/orders").contentType(MediaType.APPLICATION_JSON).content("{\"user\":\"ann\",\"units\":7}");
        mvc.perform(order).andExpect(status().isOk());
        mvc.perform(order)
                .andExpect(status().isTooManyRequests())
                .andExpect(header().string("Retry-After", "240"))
                .andExpect(jsonPath("$.violated-policies[0]").value("chat"));
    }

    @Test
    void annotatedMethods() {
        var order = new Application.Order("ann", 1);
        var mono = orders.mono(order);
        assertEquals("ordered", mono.block());
        assertThrows(RateLimitedException.class, mono::block, "each subscriber is a call");
        var threads = new ArrayList<String>();
        orders.mono(new Application.Order("eve", 1)).doOnNext(done -> threads.add(Thread.currentThread().getName())).block();
        assertEquals("parallel", threads.get(0).split("-")[0], "it goes on where nothing may block");
        assertEquals(2, orders.flux().collectList().block().size());
        assertThrows(RateLimitedException.class, () -> orders.flux().blockLast());
        assertEquals("staged", orders.stage().toCompletableFuture().join());
        var denied = assertThrows(CompletionException.class, () -> orders.stage().toCompletableFuture().join());
        assertEquals(RateLimitedException.class, denied.getCause().getClass());
        assertEquals("bob", orders.named("bob"));
        assertEquals(429, assertThrows(RateLimitedException.class, () -> orders.named("bob")).answer().status());
        assertEquals(null, orders.named(null), "a call without a key is not limited");
        assertThrows(ConfigurationException.class, orders::negative);
        assertThrows(ConfigurationException.class, () -> orders.misspelt("ann"));
        assertEquals("audited", audit.audit());
        assertThrows(RateLimitedException.class, audit::audit, "the annotation is on the interface");
    }
}
