package limiters;

import static limiters.Report.admitted;
import static limiters.Report.admittedInParallel;
import static limiters.Report.eventually;
import static limiters.Report.expect;
import static limiters.Report.expectBetween;
import static limiters.Report.expectError;
import static limiters.Report.millisSince;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.BatchResult;
import org.redisson.api.RBatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RScript;
import org.redisson.api.RSemaphore;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** Redisson: its rate limiter, semaphores, locks, topics, scripts and batches. */
final class RedissonProgram {
  private static final Duration HOUR = Duration.ofHours(1);

  private final RedissonClient first;
  private final RedissonClient second;
  private final RScript.ReturnType number = returns("LONG", "INTEGER");

  private RedissonProgram(RedissonClient first, RedissonClient second) {
    this.first = first;
    this.second = second;
  }

  /** A client as an application configures it; with a script cache it sends EVALSHA. */
  static RedissonClient connect(boolean scriptCache) {
    Config config = new Config();
    config.setUseScriptCache(scriptCache);
    config
        .useSingleServer()
        .setAddress("redis://" + Report.address())
        .setTimeout(30_000) // a busy machine is no failure
        .setConnectionMinimumIdleSize(4)
        .setConnectionPoolSize(16);
    return Redisson.create(config);
  }

  private static RRateLimiter limiter(
      RedissonClient client, String name, RateType type, long rate, Duration per) {
    RRateLimiter limiter = client.getRateLimiter(name);
    limiter.trySetRate(type, rate, per);
    return limiter;
  }

  private void exact() throws Exception {
    RRateLimiter limiter = limiter(first, "exact", RateType.OVERALL, 10, HOUR);
    expect(limiter.availablePermits(), 10L);
    expect(admitted(15, limiter::tryAcquire), 10);
    expect(limiter.availablePermits(), 0L);
    expect(limiter.tryAcquire(1, Duration.ofMillis(100)), false);
  }

  private void several() {
    RRateLimiter limiter = limiter(first, "several", RateType.OVERALL, 10, HOUR);
    expect(limiter.tryAcquire(7), true);
    expect(limiter.tryAcquire(4), false);
    expect(limiter.availablePermits(), 3L);
    expect(limiter.tryAcquire(3), true);
    expectError("cannot exceed defined rate", () -> limiter.tryAcquire(11));
  }

  private void rateIsKept() {
    RRateLimiter limiter = limiter(first, "kept", RateType.OVERALL, 10, HOUR);
    expect(limiter.trySetRate(RateType.OVERALL, 20, HOUR), false);
    RRateLimiter other = second.getRateLimiter("kept");
    expect(other.getConfig().getRate(), 10L);
    expect(other.getConfig().getRateInterval(), HOUR.toMillis());
    other.setRate(RateType.OVERALL, 3, HOUR);
    expect(limiter.getConfig().getRate(), 3L);
    expect(limiter.availablePermits(), 3L);
    expectError("is not initialized", () -> first.getRateLimiter("no-rate").tryAcquire());
  }

  private void waits() throws Exception {
    RRateLimiter limiter = limiter(first, "waits", RateType.OVERALL, 2, Duration.ofSeconds(1));
    long start = System.nanoTime();
    expect(limiter.tryAcquire(2), true);
    expect(limiter.tryAcquire(2, Duration.ofSeconds(30)), true);
    expectBetween(millisSince(start), 990, 30_000);
    eventually("two permits are back", () -> limiter.availablePermits() == 2);
    limiter.acquire(2);
  }

  private void perClient() throws Exception {
    RRateLimiter one = limiter(first, "per-client", RateType.PER_CLIENT, 3, HOUR);
    RRateLimiter two = limiter(second, "per-client", RateType.PER_CLIENT, 3, HOUR);
    expect(admitted(5, one::tryAcquire), 3);
    expect(admitted(5, two::tryAcquire), 3);
  }

  private void shared() throws Exception {
    RRateLimiter one = limiter(first, "shared", RateType.OVERALL, 5, HOUR);
    RRateLimiter two = limiter(second, "shared", RateType.OVERALL, 5, HOUR);
    expect(admitted(3, one::tryAcquire), 3);
    expect(admitted(5, two::tryAcquire), 2);
  }

  private void parallel() throws Exception {
    RRateLimiter one = limiter(first, "parallel", RateType.OVERALL, 37, HOUR);
    RRateLimiter two = limiter(second, "parallel", RateType.OVERALL, 37, HOUR);
    expect(admittedInParallel(List.of(one::tryAcquire, two::tryAcquire)), 37);
  }

  private void expires() throws Exception {
    RRateLimiter limiter = limiter(first, "expires", RateType.OVERALL, 5, HOUR);
    expect(admitted(5, limiter::tryAcquire), 5);
    expect(limiter.remainTimeToLive(), -1L);
    expect(limiter.expire(Duration.ofSeconds(1)), true);
    expectBetween(limiter.remainTimeToLive(), -2, 1000);
    eventually("the limiter is gone", () -> !limiter.isExists());
    expect(limiter.trySetRate(RateType.OVERALL, 6, HOUR), true);
    expect(admitted(8, limiter::tryAcquire), 6);
    expect(limiter.delete(), true);
    expect(limiter.isExists(), false);
  }

  private void semaphore() throws Exception {
    RSemaphore semaphore = first.getSemaphore("semaphore");
    expect(semaphore.trySetPermits(3), true);
    expect(semaphore.trySetPermits(4), false);
    expect(semaphore.tryAcquire(2), true);
    expect(semaphore.tryAcquire(2), false);
    expect(semaphore.availablePermits(), 1);
    CompletableFuture<Boolean> waiter =
        second.getSemaphore("semaphore").tryAcquireAsync(2, 30, TimeUnit.SECONDS)
            .toCompletableFuture();
    Thread.sleep(200);
    expect(waiter.isDone(), false);
    semaphore.release(2);
    expect(waiter.get(30, TimeUnit.SECONDS), true);
    expect(semaphore.drainPermits(), 1);
    expect(admittedInParallel(List.of(semaphore::tryAcquire)), 0);
    semaphore.addPermits(5);
    RSemaphore other = second.getSemaphore("semaphore");
    expect(admittedInParallel(List.of(semaphore::tryAcquire, other::tryAcquire)), 5);
  }

  private void expirableSemaphore() throws Exception {
    RPermitExpirableSemaphore semaphore = first.getPermitExpirableSemaphore("expirable");
    RPermitExpirableSemaphore other = second.getPermitExpirableSemaphore("expirable");
    expect(semaphore.trySetPermits(2), true);
    String kept = semaphore.acquire(1, TimeUnit.HOURS);
    long start = System.nanoTime();
    String lost = other.acquire(1, TimeUnit.SECONDS);
    // The lease of the second runs out, and the waiting caller gets its place.
    String next = semaphore.tryAcquire(30, 3600, TimeUnit.SECONDS);
    expectBetween(millisSince(start), 990, 30_000);
    expect(semaphore.tryRelease(lost), false);
    expect(semaphore.availablePermits(), 0);
    expect(semaphore.acquiredPermits(), 2);
    expect(other.updateLeaseTime(kept, 2, TimeUnit.HOURS), true);
    other.release(next);
    semaphore.release(kept);
    expectError("has already been released", () -> semaphore.release(kept));
    expect(semaphore.availablePermits(), 2);
    expect(
        admittedInParallel(
            List.of(
                () -> semaphore.tryAcquire(0, 3600, TimeUnit.SECONDS) != null,
                () -> other.tryAcquire(0, 3600, TimeUnit.SECONDS) != null)),
        2);
  }

  private void lock() throws Exception {
    RLock mine = first.getLock("lock");
    RLock theirs = second.getLock("lock");
    mine.lock();
    mine.lock();
    expect(mine.getHoldCount(), 2);
    expect(theirs.tryLock(), false);
    mine.unlock();
    expect(theirs.isLocked(), true);
    CompletableFuture<Boolean> waiter =
        theirs.tryLockAsync(30, 60, TimeUnit.SECONDS, 7).toCompletableFuture();
    Thread.sleep(200);
    expect(waiter.isDone(), false);
    mine.unlock();
    expect(waiter.get(30, TimeUnit.SECONDS), true);
    expect(mine.tryLock(), false);
    theirs.unlockAsync(7).toCompletableFuture().get(30, TimeUnit.SECONDS);
    expect(mine.isLocked(), false);
  }

  private void topic() throws Exception {
    LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
    int plain =
        first.getTopic("topic.a").addListener(String.class, (channel, text) -> heard.add(text));
    first
        .getPatternTopic("topic.*")
        .addListener(String.class, (pattern, channel, text) -> heard.add("" + pattern + channel + text));
    expect(second.getTopic("topic.a").publish("one"), 2L);
    List<String> both =
        List.of(heard.poll(20, TimeUnit.SECONDS), heard.poll(20, TimeUnit.SECONDS));
    expect(both.stream().sorted().toList(), List.of("one", "topic.*topic.aone"));
    expect(second.getTopic("topic.a").countSubscribers(), 1L);
    first.getTopic("topic.a").removeListener(plain);
    expect(second.getTopic("topic.a").publish("two"), 1L);
    expect(heard.poll(20, TimeUnit.SECONDS), "topic.*topic.atwo");
  }

  /** Redisson 4 gave the return types other names. */
  private static RScript.ReturnType returns(String name, String older) {
    return Stream.of(RScript.ReturnType.values())
        .filter(type -> type.name().equals(name) || type.name().equals(older))
        .findFirst()
        .orElseThrow();
  }

  private void scripts() throws Exception {
    RScript script = first.getScript(StringCodec.INSTANCE);
    String sha = script.scriptLoad(Report.PASS_THROUGH);
    expect(script.scriptExists(sha, "0".repeat(40)), List.of(true, false));
    Report.expectThrottle(
        () ->
            script.evalSha(
                RScript.Mode.READ_WRITE,
                sha,
                returns("LIST", "MULTI"),
                List.of("script"),
                "15", "30", "60", "1"));
    expectError(
        "mine",
        () ->
            script.eval(
                RScript.Mode.READ_WRITE,
                "return redis.error_reply('MINE mine')",
                number));
  }

  private void scriptFlush() throws Exception {
    RRateLimiter limiter = limiter(second, "flush", RateType.OVERALL, 4, HOUR);
    expect(limiter.tryAcquire(), true);
    RScript script = first.getScript(StringCodec.INSTANCE);
    String sha = script.scriptLoad("return 7");
    script.scriptFlush();
    // The second client sends EVALSHA and has to fall back; a bare EVALSHA says NOSCRIPT.
    expect(admitted(5, limiter::tryAcquire), 3);
    expectError(
        "NOSCRIPT",
        () -> script.evalSha(RScript.Mode.READ_WRITE, sha, number));
  }

  private void batch(BatchOptions options) {
    RBatch batch = first.createBatch(options);
    batch.getAtomicLong("batch").incrementAndGetAsync();
    batch.getAtomicLong("batch").addAndGetAsync(41);
    batch.getBucket("batch").expireAsync(Duration.ofHours(1));
    BatchResult<?> result = batch.execute();
    expect(result.getResponses(), List.of(1L, 42L, true));
    expect(first.getAtomicLong("batch").get(), 42L);
    expect(first.getKeys().delete("batch"), 1L);
  }

  /** What docs/migrating/java.md writes instead of a rate limiter. */
  private void nativeLimit() {
    List<Long> reply =
        first
            .getScript(StringCodec.INSTANCE)
            .eval(
                RScript.Mode.READ_WRITE,
                "return redis.call('SW.ALLOW', KEYS[1], 100, 60, ARGV[1], 'LOG')",
                returns("LIST", "MULTI"),
                List.of("native"),
                3);
    expect(reply, List.of(0L, 100L, 97L, -1L, 60L));
  }

  private int run(Report report) {
    report.check("rate-exact", this::exact);
    report.check("rate-several", this::several);
    report.check("rate-is-kept", this::rateIsKept);
    report.check("rate-waits", this::waits);
    report.check("rate-per-client", this::perClient);
    report.check("rate-shared", this::shared);
    report.check("rate-parallel", this::parallel);
    report.check("rate-expires", this::expires);
    report.check("semaphore", this::semaphore);
    report.check("expirable-semaphore", this::expirableSemaphore);
    report.check("lock", this::lock);
    report.check("topic", this::topic);
    report.check("script", this::scripts);
    report.check("script-flush", this::scriptFlush);
    report.check("batch", () -> batch(BatchOptions.defaults()));
    report.check(
        "batch-atomic",
        () ->
            batch(
                BatchOptions.defaults()
                    .executionMode(BatchOptions.ExecutionMode.REDIS_WRITE_ATOMIC)));
    report.check("native-limit", () -> Report.natively(this::nativeLimit));
    return report.code();
  }

  public static void main(String[] args) {
    Report report = new Report().version(Redisson.class);
    RedissonClient first = connect(false);
    RedissonClient second = connect(true);
    int code = new RedissonProgram(first, second).run(report);
    second.shutdown(0, 5, TimeUnit.SECONDS);
    first.shutdown(0, 5, TimeUnit.SECONDS);
    System.exit(code);
  }
}
