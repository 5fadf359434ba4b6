package limiters;

import static limiters.Report.admitted;
import static limiters.Report.admittedInParallel;
import static limiters.Report.eventually;
import static limiters.Report.expect;
import static limiters.Report.expectBetween;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.springframework.beans.factory.support.StaticListableBeanFactory;
import org.springframework.cloud.gateway.filter.ratelimit.RateLimiter.Response;
import org.springframework.cloud.gateway.filter.ratelimit.RedisRateLimiter;
import org.springframework.cloud.gateway.support.ConfigurationService;
import org.springframework.core.convert.support.DefaultConversionService;
import org.springframework.core.io.ClassPathResource;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.RedisScript;
import org.springframework.validation.Validator;

/**
 * Spring Cloud Gateway's RedisRateLimiter with the script from its jar. It lets everything pass
 * when Redis fails, with -1 tokens remaining, so every check looks at those as well.
 */
final class GatewayProgram {
  /** Of 600 tokens, which come back one a second: a slow machine sees ten calls pass. */
  private static final int COST = 60;

  private static final RedisScript<?> SHIPPED =
      RedisScript.of(new ClassPathResource("META-INF/scripts/request_rate_limiter.lua"), List.class);

  /** The script that docs/migrating/java.md puts in its place. */
  private static final RedisScript<?> NATIVE =
      RedisScript.of(
          """
          local reply = redis.call('TB.ACQUIRE', KEYS[1], ARGV[2], ARGV[1], 1, ARGV[4])
          return {1 - reply[1], reply[3]}
          """,
          List.class);

  private final StringRedisTemplate keys = new StringRedisTemplate(SpringDataScripts.factory());
  private final RedisRateLimiter first = limiter(SHIPPED);
  private final RedisRateLimiter second = limiter(SHIPPED);

  @SuppressWarnings({"unchecked", "rawtypes"}) // as the gateway's own configuration does
  private static RedisRateLimiter limiter(RedisScript script) {
    LettuceConnectionFactory factory = SpringDataScripts.factory();
    ConfigurationService configuration =
        new ConfigurationService(
            new StaticListableBeanFactory(),
            DefaultConversionService::getSharedInstance,
            () -> (Validator) null);
    RedisRateLimiter limiter =
        new RedisRateLimiter(new ReactiveStringRedisTemplate(factory), script, configuration);
    limiter.getConfig().put("slow", config(1, 600, COST));
    limiter.getConfig().put("parallel", config(1, 37 * 600, 600));
    limiter.getConfig().put("quick", config(2, 4, 1));
    return limiter;
  }

  private static RedisRateLimiter.Config config(int rate, long burst, int cost) {
    return new RedisRateLimiter.Config()
        .setReplenishRate(rate)
        .setBurstCapacity(burst)
        .setRequestedTokens(cost);
  }

  private static Response call(RedisRateLimiter limiter, String route, String user) {
    Response response = limiter.isAllowed(route, user).block(Duration.ofSeconds(30));
    if (remaining(response) < 0) {
      throw new IllegalStateException("the limiter had no answer from the server");
    }
    return response;
  }

  private static long remaining(Response response) {
    return Long.parseLong(response.getHeaders().get(RedisRateLimiter.REMAINING_HEADER));
  }

  private void exact() throws Exception {
    expect(admitted(14, () -> call(first, "slow", "exact").isAllowed()), 10);
  }

  private void headers() {
    Response response = call(first, "slow", "headers");
    expect(response.isAllowed(), true);
    expect(
        new TreeMap<>(response.getHeaders()),
        new TreeMap<>(
            Map.of(
                RedisRateLimiter.REMAINING_HEADER, "540",
                RedisRateLimiter.REPLENISH_RATE_HEADER, "1",
                RedisRateLimiter.BURST_CAPACITY_HEADER, "600",
                RedisRateLimiter.REQUESTED_TOKENS_HEADER, "60")));
  }

  private void remainingTokens() {
    // One token may come back with every second that passes.
    for (int left = 540; left >= 0; left -= COST) {
      expectBetween(remaining(call(first, "slow", "remaining")), left, left + 59);
    }
    Response refused = call(first, "slow", "remaining");
    expect(refused.isAllowed(), false);
    expectBetween(remaining(refused), 0, 59);
  }

  private void reopens() throws Exception {
    eventually("it refuses", () -> !call(first, "quick", "reopens").isAllowed());
    eventually("it lets pass again", () -> call(first, "quick", "reopens").isAllowed());
  }

  private void shared() throws Exception {
    expect(admitted(6, () -> call(first, "slow", "shared").isAllowed()), 6);
    expect(admitted(6, () -> call(second, "slow", "shared").isAllowed()), 4);
    expect(call(second, "slow", "somebody-else").isAllowed(), true);
  }

  private void parallel() throws Exception {
    expect(
        admittedInParallel(
            List.of(
                () -> call(first, "parallel", "all").isAllowed(),
                () -> call(second, "parallel", "all").isAllowed())),
        37);
  }

  private void keysAndExpiry() {
    call(first, "slow", "kept");
    TreeSet<String> kept = new TreeSet<>(keys.keys("request_rate_limiter.*kept}*"));
    expect(kept.size(), 2);
    String timestamp = kept.first();
    String tokens = kept.last();
    expect(keys.opsForValue().get(tokens), "540");
    long now = System.currentTimeMillis() / 1000;
    expectBetween(Long.parseLong(keys.opsForValue().get(timestamp)), now - 60, now + 60);
    expectBetween(keys.getExpire(tokens), 1100, 1200);
    expectBetween(keys.getExpire(timestamp), 1100, 1200);
  }

  private void reset() throws Exception {
    expect(admitted(12, () -> call(first, "slow", "reset").isAllowed()), 10);
    expect(keys.delete(keys.keys("request_rate_limiter.*reset}*")), 2L);
    expect(remaining(call(second, "slow", "reset")), 540L);
  }

  private void flush() {
    expect(remaining(call(first, "slow", "flush")), 540L);
    keys.execute(
        (RedisCallback<Object>)
            connection -> {
              connection.scriptingCommands().scriptFlush();
              return null;
            });
    expectBetween(remaining(call(first, "slow", "flush")), 480, 539);
  }

  private void outage() {
    keys.opsForList().leftPush("request_rate_limiter.{slow.outage}.tokens", "not a number");
    Response response = first.isAllowed("slow", "outage").block(Duration.ofSeconds(30));
    expect(response.isAllowed(), true);
    expect(remaining(response), -1L);
  }

  private void nativeScript() throws Exception {
    RedisRateLimiter limiter = limiter(NATIVE);
    expect(remaining(call(limiter, "slow", "native")), 540L);
    expect(admitted(14, () -> call(limiter, "slow", "native").isAllowed()), 9);
    expect(keys.hasKey("request_rate_limiter.{slow.native}.timestamp"), false);
  }

  private int run(Report report) {
    report.check("exact", this::exact);
    report.check("headers", this::headers);
    report.check("remaining", this::remainingTokens);
    report.check("reopens", this::reopens);
    report.check("shared", this::shared);
    report.check("parallel", this::parallel);
    report.check("keys-and-expiry", this::keysAndExpiry);
    report.check("reset", this::reset);
    report.check("script-flush", this::flush);
    report.check("error-lets-pass", this::outage);
    report.check("native-script", () -> Report.natively(this::nativeScript));
    return report.code();
  }

  public static void main(String[] args) {
    Report report = new Report().version(RedisRateLimiter.class);
    System.exit(new GatewayProgram().run(report));
  }
}
