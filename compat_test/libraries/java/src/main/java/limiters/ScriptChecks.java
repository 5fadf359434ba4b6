package limiters;

import static limiters.Report.admitted;
import static limiters.Report.admittedInParallel;
import static limiters.Report.eventually;
import static limiters.Report.expect;
import static limiters.Report.expectBetween;
import static limiters.Report.expectError;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;

/** The limiter scripts that applications write themselves, through one way of running scripts. */
final class ScriptChecks {
  /** Runs a script on one key for a reply of integers. */
  interface Runner {
    List<Long> run(String script, String key, String... args) throws Exception;
  }

  /** Arguments: capacity, tokens per second, tokens wanted. Reply: passed, left, wait in ms. */
  static final String TOKEN_BUCKET =
      """
      local capacity, rate, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
      local time = redis.call('TIME')
      local now = time[1] + time[2] / 1000000
      local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
      local tokens = capacity
      if state[1] then
        tokens = math.min(capacity, state[1] + (now - state[2]) * rate)
      end
      local passed = tokens >= wanted
      if passed then
        tokens = tokens - wanted
      end
      redis.call('HMSET', KEYS[1], 'tokens', tostring(tokens), 'at', string.format('%.6f', now))
      redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate) + 1)
      local wait = passed and 0 or (wanted - tokens) / rate * 1000
      return {passed and 1 or 0, math.floor(tokens), math.ceil(wait)}
      """;

  /** Arguments: limit, window in ms, a name for the call. Reply: passed, left, wait in ms. */
  static final String SLIDING_LOG =
      """
      local time = redis.call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
      local used = redis.call('ZCARD', KEYS[1])
      if used >= tonumber(ARGV[1]) then
        local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
        return {0, 0, oldest[2] + ARGV[2] - now}
      end
      redis.call('ZADD', KEYS[1], now, ARGV[3])
      redis.call('PEXPIRE', KEYS[1], ARGV[2])
      return {1, ARGV[1] - used - 1, 0}
      """;

  /** Arguments: limit, window in ms. Reply: passed, left, wait in ms. */
  static final String COUNTER =
      """
      local used = redis.call('INCR', KEYS[1])
      if used == 1 then
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
      end
      if used > tonumber(ARGV[1]) then
        return {0, 0, redis.call('PTTL', KEYS[1])}
      end
      return {1, ARGV[1] - used, 0}
      """;

  private static final String HOUR = "3600000";

  private final Runner first;
  private final Runner second;
  private final AtomicLong names = new AtomicLong();

  ScriptChecks(Runner first, Runner second) {
    this.first = first;
    this.second = second;
  }

  private void tokenBucket() throws Exception {
    Callable<List<Long>> three = () -> first.run(TOKEN_BUCKET, "bucket", "10", "0.001", "3");
    expect(three.call(), List.of(1L, 7L, 0L));
    expect(three.call(), List.of(1L, 4L, 0L));
    expect(second.run(TOKEN_BUCKET, "bucket", "10", "0.001", "3"), List.of(1L, 1L, 0L));
    List<Long> refused = three.call();
    expect(refused.subList(0, 2), List.of(0L, 1L));
    expectBetween(refused.get(2), 1_800_000, 2_000_000);
    expect(first.run(TOKEN_BUCKET, "quick", "5", "5", "5").get(0), 1L);
    eventually(
        "the bucket is full again",
        () -> first.run(TOKEN_BUCKET, "quick", "5", "5", "5").get(0) == 1);
  }

  private List<Long> log(Runner runner, String key, String limit, String window) throws Exception {
    return runner.run(SLIDING_LOG, key, limit, window, "call-" + names.incrementAndGet());
  }

  private void slidingLog() throws Exception {
    for (long left = 4; left >= 0; left--) {
      expect(log(left % 2 == 0 ? first : second, "log", "5", HOUR), List.of(1L, left, 0L));
    }
    List<Long> refused = log(first, "log", "5", HOUR);
    expect(refused.subList(0, 2), List.of(0L, 0L));
    expectBetween(refused.get(2), 3_400_000, 3_600_000);
    expect(log(first, "short-log", "1", "1000").get(0), 1L);
    eventually("the window has passed", () -> log(first, "short-log", "1", "1000").get(0) == 1);
  }

  private void counter() throws Exception {
    expect(admitted(8, () -> first.run(COUNTER, "counter", "5", HOUR).get(0) == 1), 5);
    expectBetween(second.run(COUNTER, "counter", "5", HOUR).get(2), 3_400_000, 3_600_000);
    expect(first.run(COUNTER, "short-counter", "1", "1000").get(0), 1L);
    eventually(
        "the window has passed", () -> first.run(COUNTER, "short-counter", "1", "1000").get(0) == 1);
  }

  private void parallel() throws Exception {
    expect(
        admittedInParallel(
            List.of(
                () -> first.run(TOKEN_BUCKET, "parallel-1", "37", "0.001", "1").get(0) == 1,
                () -> second.run(TOKEN_BUCKET, "parallel-1", "37", "0.001", "1").get(0) == 1)),
        37);
    expect(
        admittedInParallel(
            List.of(
                () -> log(first, "parallel-2", "41", HOUR).get(0) == 1,
                () -> log(second, "parallel-2", "41", HOUR).get(0) == 1)),
        41);
  }

  private void errors() {
    expectError(
        "no more today", () -> first.run("return redis.error_reply('ERR no more today')", "error"));
    expectError(
        "WRONGTYPE",
        () ->
            first.run(
                "redis.call('SET', KEYS[1], 'text') return redis.call('HGET', KEYS[1], 'f')",
                "error"));
    expectError("rror compiling script", () -> first.run("return +", "error"));
  }

  /** Reports six checks. */
  void run(Report report) {
    report.check("token-bucket", this::tokenBucket);
    report.check("sliding-log", this::slidingLog);
    report.check("counter", this::counter);
    report.check("parallel", this::parallel);
    report.check("script-errors", this::errors);
    report.check(
        "throttle-in-script",
        () ->
            Report.expectThrottle(
                () -> first.run(Report.PASS_THROUGH, "throttle", "15", "30", "60", "1")));
  }
}
