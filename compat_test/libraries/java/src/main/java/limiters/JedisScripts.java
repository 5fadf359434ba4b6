package limiters;

import static limiters.Report.expect;
import static limiters.Report.expectError;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Stream;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisNoScriptException;

/** Jedis: eval and evalsha through its pools, transactions and pipelines. */
final class JedisScripts {
  /** What docs/migrating/java.md declares: Jedis takes any command by its name. */
  enum Limiter implements ProtocolCommand {
    TOKEN_BUCKET("TB.ACQUIRE"),
    ACQUIRE("CC.ACQUIRE"),
    RELEASE("CC.RELEASE");

    private final byte[] name;

    Limiter(String name) {
      this.name = name.getBytes(StandardCharsets.US_ASCII);
    }

    @Override
    public byte[] getRaw() {
      return name;
    }
  }

  private static final HostAndPort ADDRESS = new HostAndPort(Report.host(), Report.port());
  // The default of two seconds would make a busy machine a failure.
  private static final JedisClientConfig PATIENT =
      DefaultJedisClientConfig.builder().timeoutMillis(30_000).build();

  private final JedisPool pool = new JedisPool(ADDRESS, PATIENT);
  private final JedisPooled pooled = pooled();
  private final RedisClient client =
      RedisClient.builder().hostAndPort(ADDRESS).clientConfig(PATIENT).build();

  /** The client that most applications have. */
  static JedisPooled pooled() {
    return new JedisPooled(ADDRESS, PATIENT);
  }

  private static List<Long> numbers(Object reply) {
    return Stream.of(((List<?>) reply).toArray()).map(Long.class::cast).toList();
  }

  private List<Long> eval(String script, String key, String... args) {
    try (Jedis jedis = pool.getResource()) {
      return numbers(jedis.eval(script, List.of(key), List.of(args)));
    }
  }

  /** EVALSHA, and EVAL where the server does not know the script: how most people write it. */
  private static List<Long> evalsha(UnifiedJedis jedis, String script, String key, String... args) {
    try {
      return numbers(jedis.evalsha(Sha.of(script), List.of(key), List.of(args)));
    } catch (JedisNoScriptException unknown) {
      return numbers(jedis.eval(script, List.of(key), List.of(args)));
    }
  }

  private void load() {
    String sha = pooled.scriptLoad("return {1, 2, tonumber(ARGV[1])}", "any");
    expect(sha, Sha.of("return {1, 2, tonumber(ARGV[1])}"));
    expect(numbers(client.evalsha(sha, List.of(), List.of("3"))), List.of(1L, 2L, 3L));
    expect(numbers(client.evalshaReadonly(sha, List.of(), List.of("4"))), List.of(1L, 2L, 4L));
    try (Jedis jedis = pool.getResource()) {
      expect(jedis.scriptExists(sha, "0".repeat(40)), List.of(true, false));
    }
  }

  private void flush() {
    String once = "return {redis.call('INCR', KEYS[1])}";
    expect(evalsha(pooled, once, "flush"), List.of(1L));
    try (Jedis jedis = pool.getResource()) {
      jedis.scriptFlush();
      expectError("NOSCRIPT", () -> jedis.evalsha(Sha.of(once), 1, "flush"));
    }
    expect(evalsha(pooled, once, "flush"), List.of(2L));
    expect(numbers(client.evalsha(Sha.of(once), 1, "flush")), List.of(3L));
  }

  private void transaction() {
    try (Jedis jedis = pool.getResource()) {
      Transaction transaction = jedis.multi();
      Response<Long> used = transaction.incr("transaction");
      transaction.expire("transaction", 60);
      Response<Object> script = transaction.eval("return redis.call('GET', KEYS[1])", 1, "transaction");
      expect(transaction.exec().size(), 3);
      expect(used.get(), 1L);
      expect(script.get(), "1");
    }
    try (AbstractTransaction transaction = client.multi()) {
      Response<Long> used = transaction.incr("transaction");
      expect(transaction.exec(), List.of(2L));
      expect(used.get(), 2L);
    }
  }

  private void watch() {
    try (Jedis jedis = pool.getResource()) {
      jedis.set("watched", "5");
      jedis.watch("watched");
      pooled.decr("watched");
      Transaction transaction = jedis.multi();
      transaction.set("watched", "9");
      expect(String.valueOf(transaction.exec()), "null");
      expect(jedis.get("watched"), "4");
    }
  }

  private void pipeline() {
    String sha = pooled.scriptLoad(ScriptChecks.COUNTER, "any");
    try (Pipeline pipeline = pooled.pipelined()) {
      List<Response<Object>> replies =
          Stream.generate(
                  () -> pipeline.evalsha(sha, List.of("pipeline"), List.of("60", "3600000")))
              .limit(100)
              .toList();
      pipeline.sync();
      expect(replies.stream().filter(one -> numbers(one.get()).get(0) == 1).count(), 60L);
    }
  }

  private void nativeCommands() {
    expect(
        pooled.sendCommand(Limiter.TOKEN_BUCKET, "native", "100", "10", "1", "3"),
        List.of(0L, 100L, 97L, -1L, 1L));
    expect(
        client.sendCommand(Limiter.ACQUIRE, "native-jobs", "5", "60", "request-1"),
        List.of(0L, 5L, 4L, -1L, 60L));
    expect(client.sendCommand(Limiter.RELEASE, "native-jobs", "request-1"), 1L);
  }

  private int run(Report report) {
    new ScriptChecks(this::eval, (script, key, args) -> evalsha(pooled, script, key, args))
        .run(report);
    report.check("script-load", this::load);
    report.check("script-flush", this::flush);
    report.check("transaction", this::transaction);
    report.check("watch", this::watch);
    report.check("pipeline", this::pipeline);
    report.check("native-commands", () -> Report.natively(this::nativeCommands));
    return report.code();
  }

  public static void main(String[] args) {
    Report report = new Report().version(Jedis.class);
    System.exit(new JedisScripts().run(report));
  }
}
