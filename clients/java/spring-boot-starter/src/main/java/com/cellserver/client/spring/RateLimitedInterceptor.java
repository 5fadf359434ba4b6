package com.cellserver.client.spring;

import com.cellserver.client.ConfigurationException;
import com.cellserver.client.HttpAnswer;
import com.cellserver.client.Limiter;
import com.cellserver.client.RequestInfo;
import com.cellserver.client.Result;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.springframework.aop.ProxyMethodInvocation;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.expression.Expression;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Limits the calls of methods with {@link RateLimited}. */
final class RateLimitedInterceptor implements MethodInterceptor {
    private static final DefaultParameterNameDiscoverer NAMES = new DefaultParameterNameDiscoverer();
    private static final SpelExpressionParser PARSER = new SpelExpressionParser();

    private final ObjectProvider<CellserverLimiters> limiters;
    private final BeanFactory beans;
    private final ConcurrentMap<Method, Plan> plans = new ConcurrentHashMap<>();

    private record Plan(Limiter<RequestInfo> limiter, Expression key, Expression cost) {}

    /** The limiters are looked up with the first call, so that the interceptor makes no bean before its time. */
    RateLimitedInterceptor(ObjectProvider<CellserverLimiters> limiters, BeanFactory beans) {
        this.limiters = limiters;
        this.beans = beans;
    }

    @Override
    public Object invoke(MethodInvocation call) throws Throwable {
        Object target = call.getThis();
        var method = target == null ? call.getMethod() : AopUtils.getMostSpecificMethod(call.getMethod(), target.getClass());
        var plan = plans.computeIfAbsent(method, this::plan);
        var context = new MethodBasedEvaluationContext(target, method, call.getArguments(), NAMES);
        context.setBeanResolver(new BeanFactoryResolver(beans));
        Object key = plan.key.getValue(context);
        if (key == null) {
            return call.proceed();
        }
        Long cost = plan.cost.getValue(context, Long.class);
        if (cost == null || cost < 0) {
            throw new ConfigurationException("the cost of @RateLimited is 0 or more, not " + cost + ": " + method.getName());
        }
        var returned = method.getReturnType();
        if (Mono.class.isAssignableFrom(returned)) {
            return decided(plan, key, cost).flatMap(result -> (Mono<?>) proceed(call));
        }
        if (Flux.class.isAssignableFrom(returned)) {
            return decided(plan, key, cost).flatMapMany(result -> (Flux<?>) proceed(call));
        }
        if (returned.isAssignableFrom(CompletableFuture.class) && CompletionStage.class.isAssignableFrom(returned)) {
            return plan.limiter.checkAsync(key.toString(), cost).thenCompose(result -> {
                admit(plan, result);
                return (CompletionStage<?>) proceed(call);
            });
        }
        admit(plan, plan.limiter.check(key.toString(), cost));
        return call.proceed();
    }

    private Plan plan(Method method) {
        var annotation = AnnotatedElementUtils.findMergedAnnotation(method, RateLimited.class);
        if (annotation == null) {
            throw new IllegalStateException("no @RateLimited: " + method);
        }
        var limiter = limiters.getObject().get(annotation.policy(), List.of(annotation.limits()));
        return new Plan(limiter, expression(annotation.key(), method), expression(annotation.cost(), method));
    }

    /** Parses SpEL. A variable that names no parameter would be null, and the call not limited, so it is an error. */
    private static Expression expression(String text, Method method) {
        var known = new HashSet<>(Set.of("root", "this"));
        for (int i = 0; i < method.getParameterCount(); i++) {
            known.add("a" + i);
            known.add("p" + i);
        }
        var names = NAMES.getParameterNames(method);
        if (names != null) {
            known.addAll(List.of(names));
        }
        var expression = PARSER.parseRaw(text);
        checkVariables(expression.getAST(), known, method);
        return expression;
    }

    private static void checkVariables(SpelNode node, Set<String> known, Method method) {
        String text = node instanceof VariableReference ? node.toStringAST() : "";
        if (!text.isEmpty() && !known.contains(text.substring(1))) {
            throw new ConfigurationException(
                    text + " of @RateLimited names no parameter of " + method + ": javac needs -parameters, or use #a0");
        }
        for (int i = 0; i < node.getChildCount(); i++) {
            checkVariables(node.getChild(i), known, method);
        }
    }

    /** The decision for each subscriber, or the exception. */
    private static Mono<Result> decided(Plan plan, Object key, long cost) {
        return Mono.defer(() -> Mono.fromFuture(plan.limiter.checkAsync(key.toString(), cost)))
                .publishOn(Schedulers.parallel())
                .doOnNext(result -> admit(plan, result));
    }

    private static void admit(Plan plan, Result result) {
        if (!result.allowed()) {
            throw new RateLimitedException(result, HttpAnswer.of(result, plan.limiter.headers()));
        }
    }

    private static Object proceed(MethodInvocation call) {
        try {
            // What subscribes later needs an invocation of its own.
            return call instanceof ProxyMethodInvocation proxied
                    ? proxied.invocableClone().proceed()
                    : call.proceed();
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new CompletionException(e);
        }
    }
}
