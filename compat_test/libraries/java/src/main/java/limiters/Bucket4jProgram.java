package limiters;

import static limiters.Report.admitted;
import static limiters.Report.admittedInParallel;
import static limiters.Report.eventually;
import static limiters.Report.expect;
import static limiters.Report.expectBetween;
import static limiters.Report.millisSince;

import io.github.bucket4j.Bucket;
import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.ConsumptionProbe;
import io.github.bucket4j.TokensInheritanceStrategy;
import io.github.bucket4j.distributed.ExpirationAfterWriteStrategy;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.redis.jedis.Bucket4jJedis;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.github.bucket4j.redis.redisson.Bucket4jRedisson;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.redisson.Redisson;
import org.redisson.command.CommandAsyncExecutor;
import redis.clients.jedis.JedisPooled;

/**
 * Bucket4j's proxy managers, which compare and swap a bucket's state by a script: one of jedis,
 * lettuce and redisson.
 */
final class Bucket4jProgram {
  private static final BucketConfiguration TEN_PER_HOUR = perPeriod(10, Duration.ofHours(1));

  private final Function<String, Opened> first;
  private final Function<String, Opened> second;
  private final JedisPooled keys = JedisScripts.pooled();

  /** The buckets of one key, as one proxy manager hands them out. */
  private interface Opened {
    Bucket bucket(BucketConfiguration configuration);

    void remove();
  }

  private Bucket4jProgram(Function<String, Opened> first, Function<String, Opened> second) {
    this.first = first;
    this.second = second;
  }

  private static BucketConfiguration perPeriod(long tokens, Duration period) {
    return BucketConfiguration.builder()
        .addLimit(limit -> limit.capacity(tokens).refillIntervally(tokens, period))
        .build();
  }

  private static <K> Function<String, Opened> open(
      ProxyManager<K> manager, Function<String, K> key) {
    return name ->
        new Opened() {
          @Override
          public Bucket bucket(BucketConfiguration configuration) {
            return manager.builder().build(key.apply(name), () -> configuration);
          }

          @Override
          public void remove() {
            manager.removeProxy(key.apply(name));
          }
        };
  }

  private static byte[] bytes(String name) {
    return name.getBytes(StandardCharsets.UTF_8);
  }

  /** A proxy manager over a client of its own. */
  private static Function<String, Opened> connect(String client) {
    ExpirationAfterWriteStrategy expiry =
        ExpirationAfterWriteStrategy.basedOnTimeForRefillingBucketUpToMax(Duration.ofSeconds(1));
    return switch (client) {
      case "jedis" ->
          open(
              Bucket4jJedis.casBasedBuilder(JedisScripts.pooled())
                  .expirationAfterWrite(expiry)
                  .build(),
              Bucket4jProgram::bytes);
      case "lettuce" ->
          open(
              Bucket4jLettuce.casBasedBuilder(
                      RedisClient.create(RedisURI.create(Report.host(), Report.port())))
                  .expirationAfterWrite(expiry)
                  .build(),
              Bucket4jProgram::bytes);
      default ->
          open(
              Bucket4jRedisson.casBasedBuilder(executor())
                  .expirationAfterWrite(expiry)
                  .build(),
              name -> name);
    };
  }

  static CommandAsyncExecutor executor() {
    return ((Redisson) RedissonProgram.connect(true)).getCommandExecutor();
  }

  private void exact() throws Exception {
    Bucket bucket = first.apply("exact").bucket(TEN_PER_HOUR);
    expect(bucket.getAvailableTokens(), 10L);
    expect(admitted(15, () -> bucket.tryConsume(1)), 10);
    expect(bucket.tryConsume(1), false);
    expect(bucket.getAvailableTokens(), 0L);
  }

  private void several() {
    Bucket bucket = first.apply("several").bucket(TEN_PER_HOUR);
    expect(bucket.tryConsume(7), true);
    expect(bucket.tryConsume(4), false);
    expect(bucket.tryConsumeAsMuchAsPossible(), 3L);
    bucket.addTokens(2);
    expect(bucket.tryConsume(2), true);
    expect(bucket.tryConsume(1), false);
  }

  private void probe() {
    Bucket bucket = first.apply("probe").bucket(TEN_PER_HOUR);
    ConsumptionProbe passed = bucket.tryConsumeAndReturnRemaining(8);
    expect(passed.isConsumed(), true);
    expect(passed.getRemainingTokens(), 2L);
    ConsumptionProbe refused = bucket.tryConsumeAndReturnRemaining(3);
    expect(refused.isConsumed(), false);
    expect(refused.getRemainingTokens(), 2L);
    long wait = TimeUnit.NANOSECONDS.toSeconds(refused.getNanosToWaitForRefill());
    expectBetween(wait, 3400, 3600);
    expect(bucket.estimateAbilityToConsume(2).canBeConsumed(), true);
  }

  private void reopens() throws Exception {
    Bucket bucket = first.apply("reopens").bucket(perPeriod(3, Duration.ofSeconds(1)));
    long start = System.nanoTime();
    expect(bucket.tryConsume(3), true);
    expect(bucket.asBlocking().tryConsume(3, Duration.ofSeconds(30)), true);
    expectBetween(millisSince(start), 990, 30_000);
    eventually("the bucket is full", () -> bucket.getAvailableTokens() == 3);
  }

  private void shared() throws Exception {
    Bucket one = first.apply("shared").bucket(TEN_PER_HOUR);
    Bucket two = second.apply("shared").bucket(TEN_PER_HOUR);
    expect(admitted(6, () -> one.tryConsume(1)), 6);
    expect(admitted(6, () -> two.tryConsume(1)), 4);
    expect(one.getAvailableTokens(), 0L);
  }

  private void parallel() throws Exception {
    BucketConfiguration limit = perPeriod(37, Duration.ofHours(1));
    Bucket one = first.apply("parallel").bucket(limit);
    Bucket two = second.apply("parallel").bucket(limit);
    expect(admittedInParallel(List.of(() -> one.tryConsume(1), () -> two.tryConsume(1))), 37);
  }

  private void removed() throws Exception {
    Bucket bucket = first.apply("removed").bucket(TEN_PER_HOUR);
    expect(bucket.tryConsume(10), true);
    first.apply("removed").remove();
    expect(keys.exists("removed"), false);
    expect(bucket.getAvailableTokens(), 10L);
    second.apply("removed").remove();
  }

  private void replaced() {
    Bucket bucket = first.apply("replaced").bucket(TEN_PER_HOUR);
    expect(bucket.tryConsume(10), true);
    bucket.replaceConfiguration(
        perPeriod(20, Duration.ofHours(1)), TokensInheritanceStrategy.ADDITIVE);
    expect(second.apply("replaced").bucket(TEN_PER_HOUR).getAvailableTokens(), 10L);
    bucket.reset();
    expect(bucket.getAvailableTokens(), 20L);
  }

  private void expires() throws Exception {
    Bucket bucket = first.apply("expires").bucket(perPeriod(3, Duration.ofSeconds(1)));
    expect(bucket.tryConsume(3), true);
    expectBetween(keys.pttl("expires"), -2, 2000);
    eventually("the bucket's key has expired", () -> !keys.exists("expires"));
    expect(bucket.tryConsume(3), true);
    expect(bucket.tryConsume(4), false);
  }

  private void scriptFlush() {
    Bucket bucket = first.apply("flush").bucket(TEN_PER_HOUR);
    expect(bucket.tryConsume(4), true);
    keys.scriptFlush("any");
    expect(bucket.tryConsume(4), true);
    expect(bucket.tryConsume(4), false);
  }

  private int run(Report report) {
    report.check("exact", this::exact);
    report.check("several", this::several);
    report.check("wait-is-sound", this::probe);
    report.check("reopens", this::reopens);
    report.check("shared", this::shared);
    report.check("parallel", this::parallel);
    report.check("removed", this::removed);
    report.check("limit-replaced", this::replaced);
    report.check("expires", this::expires);
    report.check("script-flush", this::scriptFlush);
    return report.code();
  }

  public static void main(String[] args) {
    Report report = new Report().version(Bucket.class);
    System.exit(new Bucket4jProgram(connect(args[0]), connect(args[0])).run(report));
  }
}
