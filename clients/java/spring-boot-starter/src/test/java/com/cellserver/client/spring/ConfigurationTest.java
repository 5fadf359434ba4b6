package com.cellserver.client.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.cellserver.client.Limiter;
import com.cellserver.client.Source;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;

class ConfigurationTest {
    private final WebApplicationContextRunner runner = new WebApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(CellserverAutoConfiguration.class))
            .withBean(MeterRegistry.class, SimpleMeterRegistry::new);

    private final WebApplicationContextRunner allowing =
            runner.withPropertyValues("cellserver.url=redis://127.0.0.1:1", "cellserver.on-unavailable=allow");

    @Test
    void whatIsMissingOrWrongEndsTheStart() {
        runner.run(context -> assertThat(context).getFailure().rootCause().hasMessageContaining("cellserver.url"));
        for (String wrong : List.of(
                "cellserver.filters[0].key=nonsense", "cellserver.filters[0].policy=", "cellserver.filters[0].cost=-1",
                "cellserver.trusted-networks=nonsense", "cellserver.v6-prefix=65", "cellserver.deadline=5ms")) {
            allowing.withPropertyValues("cellserver.filters[0].paths=/api/**", wrong).run(context -> assertThat(context).hasFailed());
        }
    }

    @Test
    void metricsHaveNoKey() {
        allowing.withPropertyValues("cellserver.filters[0].policy=api").run(context -> {
            var limiter = context.getBean(CellserverLimiters.class).get("api", List.of());
            assertThat(limiter).isSameAs(context.getBean(CellserverLimiters.class).get("api", List.of()));
            for (int i = 0; i < 5; i++) {
                assertThat(limiter.check("secret", 1).source()).isEqualTo(Source.UNAVAILABLE);
            }
            var registry = context.getBean(MeterRegistry.class);
            var decisions = registry.get("cellserver.client.decisions").tags("policy", "api", "result", "allowed", "source", "unavailable");
            assertThat(decisions.counter().count()).isEqualTo(5);
            assertThat(registry.get("cellserver.client.breaker.open").gauge().value()).isEqualTo(1);
            assertThat(registry.get("cellserver.client.unavailable").counters()).isNotEmpty();
            assertThat(registry.get("cellserver.client.duration").timer().count()).isZero();
            assertThat(registry.getMeters().toString()).doesNotContain("secret");
            assertThat(context).hasSingleBean(Limiter.class);
        });
    }
}
