package limiters;

import static limiters.Report.expect;
import static limiters.Report.expectError;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.dynamic.Commands;
import io.lettuce.core.dynamic.RedisCommandFactory;
import io.lettuce.core.dynamic.annotation.Command;
import io.lettuce.core.dynamic.annotation.Param;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Lettuce: eval and evalsha, the dynamic command interface, transactions, pub/sub. */
final class LettuceScripts {
  /** What an application declares; Lettuce compares it with the server's COMMAND. */
  interface Counters extends Commands {
    @Command("INCRBY :key :by")
    Long add(@Param("key") String key, @Param("by") long by);

    @Command("PEXPIRE ?0 ?1")
    Boolean within(String key, long millis);

    @Command("EVAL ?0 1 ?1 ?2 ?3")
    List<Object> window(String script, String key, long limit, long millis);

    @Command("HINCRBY :key :field 1")
    Long count(@Param("key") String key, @Param("field") String field);
  }

  /** redis-cell's command as its Lettuce users declare it. */
  interface Cell extends Commands {
    @Command("CL.THROTTLE ?0 ?1 ?2 ?3 ?4")
    List<Object> throttle(String key, long burst, long count, long period, long quantity);
  }

  /** What docs/migrating/java.md declares instead of a token bucket's script. */
  interface Buckets extends Commands {
    @Command("TB.ACQUIRE ?0 ?1 ?2 ?3 ?4")
    List<Object> take(String key, long capacity, long count, long seconds, long quantity);
  }

  private final RedisClient client =
      RedisClient.create(RedisURI.create(Report.host(), Report.port()));
  private final StatefulRedisConnection<String, String> connection = client.connect();
  private final RedisCommands<String, String> commands = connection.sync();
  private final RedisCommands<String, String> others = client.connect().sync();

  private List<Long> eval(String script, String key, String... args) {
    return commands.eval(script, ScriptOutputType.MULTI, new String[] {key}, args);
  }

  private List<Long> evalsha(String script, String key, String... args) {
    String[] keys = {key};
    try {
      return others.evalsha(others.digest(script), ScriptOutputType.MULTI, keys, args);
    } catch (RedisNoScriptException unknown) {
      return others.eval(script, ScriptOutputType.MULTI, keys, args);
    }
  }

  private void dynamicInterface() {
    Counters counters = new RedisCommandFactory(connection).getCommands(Counters.class);
    expect(counters.add("dynamic", 5), 5L);
    expect(counters.add("dynamic", -2), 3L);
    expect(counters.within("dynamic", 3_600_000), true);
    expect(counters.count("dynamic-hash", "a"), 1L);
    expect(
        counters.window(ScriptChecks.COUNTER, "dynamic-window", 3, 3_600_000), List.of(1L, 2L, 0L));
    expectError("WRONGTYPE", () -> counters.count("dynamic", "a"));
  }

  private void dynamicThrottle() throws Exception {
    if (!Report.knowsThrottle()) {
      expectError(
          "CL.THROTTLE",
          () -> new RedisCommandFactory(connection).getCommands(Cell.class));
      return;
    }
    Cell cell = new RedisCommandFactory(connection).getCommands(Cell.class);
    Report.expectThrottle(() -> cell.throttle("dynamic-throttle", 15, 30, 60, 1));
    expect(cell.throttle("dynamic-throttle", 15, 30, 60, 99).get(0), 1L);
    expectError("Cell error", () -> cell.throttle("dynamic-throttle", 15, 0, 60, 1));
  }

  private void nativeBucket() {
    Buckets buckets = new RedisCommandFactory(connection).getCommands(Buckets.class);
    expect(buckets.take("native", 100, 10, 1, 3), List.of(0L, 100L, 97L, -1L, 1L));
    expect(buckets.take("native", 100, 10, 1, 200).get(0), 1L);
  }

  private void outputTypes() {
    expect(commands.eval("return 7", ScriptOutputType.INTEGER), 7L);
    expect(commands.eval("return 'text'", ScriptOutputType.VALUE), "text");
    expect(commands.eval("return redis.status_reply('FINE')", ScriptOutputType.STATUS), "FINE");
    expect(commands.eval("return 1", ScriptOutputType.BOOLEAN), true);
    expect(commands.eval("return false", ScriptOutputType.BOOLEAN), false);
    expect(
        commands.eval("return {1, {'two', 3}}", ScriptOutputType.MULTI),
        List.of(1L, List.of("two", 3L)));
    expect(
        commands.evalReadOnly(
            "return redis.call('EXISTS', KEYS[1])",
            ScriptOutputType.INTEGER,
            new String[] {"nothing"}),
        0L);
  }

  private void flush() {
    String once = "return {redis.call('INCR', KEYS[1])}";
    expect(commands.scriptLoad(once), commands.digest(once));
    expect(commands.scriptExists(commands.digest(once)), List.of(true));
    expect(evalsha(once, "flush"), List.of(1L));
    commands.scriptFlush();
    expect(commands.scriptExists(commands.digest(once)), List.of(false));
    expect(evalsha(once, "flush"), List.of(2L));
    expect(evalsha(once, "flush"), List.of(3L));
  }

  private void transaction() {
    commands.multi();
    commands.incr("transaction");
    commands.pexpire("transaction", 3_600_000);
    commands.eval("return redis.call('GET', KEYS[1])", ScriptOutputType.VALUE, "transaction");
    TransactionResult result = commands.exec();
    expect(result.stream().toList(), List.of(1L, true, "1"));
    commands.watch("transaction");
    others.incr("transaction");
    commands.multi();
    commands.incr("transaction");
    expect(commands.exec().wasDiscarded(), true);
    expect(commands.get("transaction"), "2");
  }

  private void publish() throws Exception {
    LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
    try (StatefulRedisPubSubConnection<String, String> ears = client.connectPubSub()) {
      ears.addListener(
          new RedisPubSubAdapter<>() {
            @Override
            public void message(String channel, String text) {
              heard.add(channel + text);
            }
          });
      ears.sync().subscribe("lettuce.");
      expect(commands.publish("lettuce.", "one"), 1L);
      expect(String.valueOf(heard.poll(20, TimeUnit.SECONDS)), "lettuce.one");
      ears.sync().unsubscribe("lettuce.");
      expect(commands.publish("lettuce.", "two"), 0L);
    }
  }

  private int run(Report report) {
    new ScriptChecks(this::eval, this::evalsha).run(report);
    report.check("output-types", this::outputTypes);
    report.check("script-flush", this::flush);
    report.check("dynamic-interface", this::dynamicInterface);
    report.check("dynamic-throttle", this::dynamicThrottle);
    report.check("transaction", this::transaction);
    report.check("publish", this::publish);
    report.check("native-bucket", () -> Report.natively(this::nativeBucket));
    return report.code();
  }

  public static void main(String[] args) {
    Report report = new Report().version(RedisClient.class);
    System.exit(new LettuceScripts().run(report));
  }
}
