package com.cellserver.client.spring;

import com.cellserver.client.ClientMetrics;
import com.cellserver.client.ConfigurationException;
import com.cellserver.client.Limiter;
import com.cellserver.client.LimiterOptions;
import com.cellserver.client.RequestInfo;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.List;
import java.util.function.Consumer;
import org.springframework.aop.Advisor;
import org.springframework.aop.support.DefaultPointcutAdvisor;
import org.springframework.aop.support.annotation.AnnotationMatchingPointcut;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication.Type;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Role;

/** Makes limiters of the properties cellserver.*. A bean {@code Limiter<RequestInfo>} of the application replaces the connection. */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.autoconfigure.aop.AopAutoConfiguration"
        })
@EnableConfigurationProperties(CellserverProperties.class)
public class CellserverAutoConfiguration {
    // Limiters are made of the first one with a policy of their own.
    private static final String NO_POLICY = "none";

    /** The metrics of the application's registry. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(MeterRegistry.class)
    static class Micrometer {
        @Bean
        @ConditionalOnBean(MeterRegistry.class)
        @ConditionalOnMissingBean
        ClientMetrics cellserverMetrics(MeterRegistry registry) {
            return new MicrometerMetrics(registry);
        }
    }

    /** The limits of requests in servlet applications. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = Type.SERVLET)
    @Import(RateLimitedAdvice.class)
    static class Servlet {
        @Bean
        FilterRegistrationBean<LimitFilter> cellserverFilter(CellserverRules rules, CellserverProperties properties) {
            var registration = new FilterRegistrationBean<>(new LimitFilter(rules.rules));
            registration.setOrder(properties.order());
            return registration;
        }
    }

    /** The limits of requests in WebFlux applications. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = Type.REACTIVE)
    @Import(RateLimitedAdvice.class)
    static class Reactive {
        @Bean
        LimitWebFilter cellserverWebFilter(CellserverRules rules, CellserverProperties properties) {
            return new LimitWebFilter(rules.rules, properties.order());
        }
    }

    /** The limits of requests. They are checked when the application starts, which ends if the server refuses one. */
    static final class CellserverRules implements SmartInitializingSingleton {
        private final List<Rule> rules;

        CellserverRules(List<Rule> rules) {
            this.rules = rules;
        }

        @Override
        public void afterSingletonsInstantiated() {
            rules.stream().map(Rule::limiter).distinct().forEach(Limiter::start);
        }
    }

    @Bean
    @ConditionalOnWebApplication
    CellserverRules cellserverRules(CellserverProperties properties, CellserverLimiters limiters, BeanFactory beans) {
        return new CellserverRules(properties.filters().stream()
                .map(filter -> Rule.of(filter, properties, limiters, beans))
                .toList());
    }

    /** The connection. Beans that take LimiterOptions change its options. */
    @Bean
    @ConditionalOnMissingBean
    Limiter<RequestInfo> cellserverLimiter(
            CellserverProperties properties,
            ObjectProvider<ClientMetrics> metrics,
            ObjectProvider<CellserverCustomizer> customizers) {
        if (properties.url() == null || properties.onUnavailable() == null) {
            throw new ConfigurationException("cellserver.url and cellserver.on-unavailable are needed");
        }
        LimiterOptions<RequestInfo> options = Limiter.builder();
        options.url(properties.url())
                .onUnavailable(properties.onUnavailable())
                .policy(NO_POLICY)
                .key(request -> null)
                .deadline(properties.deadline())
                .denialCache(properties.denialCache())
                .retry(properties.retry())
                .headers(properties.headers())
                .metrics(metrics.getIfAvailable(() -> ClientMetrics.NONE));
        if (properties.instances() != null) {
            options.instances(properties.instances());
        }
        customizers.orderedStream().forEach(customizer -> customizer.accept(options));
        return options.build();
    }

    /** Changes the options of the limiter that the properties make, such as those of TLS. */
    public interface CellserverCustomizer extends Consumer<LimiterOptions<RequestInfo>> {}

    @Bean
    CellserverLimiters cellserverLimiters(Limiter<RequestInfo> limiter) {
        return new CellserverLimiters(limiter);
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static Advisor cellserverAdvisor(ObjectProvider<CellserverLimiters> limiters, BeanFactory beans) {
        return new DefaultPointcutAdvisor(
                new AnnotationMatchingPointcut(null, RateLimited.class, true), new RateLimitedInterceptor(limiters, beans));
    }
}
