package limiters;

import static limiters.Report.admittedInParallel;
import static limiters.Report.expect;
import static limiters.Report.expectBetween;
import static limiters.Report.expectError;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.springframework.dao.DataAccessException;
import org.springframework.data.redis.connection.Message;
import org.springframework.data.redis.connection.ReturnType;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.RedisScript;
import org.springframework.data.redis.listener.ChannelTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.support.atomic.RedisAtomicLong;

/** Spring Data Redis over Lettuce: execute(RedisScript) and what stands beside it in limiters. */
final class SpringDataScripts {
  private final LettuceConnectionFactory factory = factory();
  private final StringRedisTemplate template = new StringRedisTemplate(factory);
  private final ReactiveStringRedisTemplate reactive = new ReactiveStringRedisTemplate(factory());

  /** A connection factory that is ready for use. */
  static LettuceConnectionFactory factory() {
    LettuceConnectionFactory factory = new LettuceConnectionFactory(Report.host(), Report.port());
    factory.afterPropertiesSet();
    factory.start();
    return factory;
  }

  @SuppressWarnings("unchecked") // a script has no more than the class of its result
  private List<Long> execute(String script, String key, String... args) {
    return template.execute(RedisScript.of(script, List.class), List.of(key), (Object[]) args);
  }

  @SuppressWarnings("unchecked")
  private List<Long> executeReactive(String script, String key, String... args) {
    return reactive
        .execute(RedisScript.of(script, List.class), List.of(key), List.of(args))
        .blockLast(Duration.ofSeconds(30));
  }

  private void resultTypes() {
    expect(template.execute(RedisScript.of("return 7", Long.class), List.of()), 7L);
    expect(template.execute(RedisScript.of("return 1", Boolean.class), List.of()), true);
    expect(template.execute(RedisScript.of("return false", Boolean.class), List.of()), false);
    expect(template.execute(RedisScript.of("return 'text'", String.class), List.of()), "text");
    byte[] script = "return {1, 2}".getBytes(StandardCharsets.UTF_8);
    RedisCallback<List<Long>> raw =
        connection -> connection.scriptingCommands().eval(script, ReturnType.MULTI, 0);
    expect(template.execute(raw), List.of(1L, 2L));
  }

  private void flush() {
    String once = "return {redis.call('INCR', KEYS[1])}";
    expect(execute(once, "flush"), List.of(1L));
    RedisCallback<Object> flush =
        connection -> {
          connection.scriptingCommands().scriptFlush();
          return null;
        };
    template.execute(flush);
    expect(execute(once, "flush"), List.of(2L));
    template.execute(flush);
    expect(executeReactive(once, "flush"), List.of(3L));
    expectError(
        "NOSCRIPT",
        () ->
            template.execute(
                (RedisCallback<Object>)
                    connection ->
                        connection
                            .scriptingCommands()
                            .evalSha("0".repeat(40), ReturnType.INTEGER, 0)));
  }

  private void counterAndExpiry() throws Exception {
    Callable<Boolean> call = () -> template.opsForValue().increment("counted") <= 37;
    expect(admittedInParallel(List.of(call)), 37);
    expect(template.expire("counted", Duration.ofHours(1)), true);
    expectBetween(template.getExpire("counted", TimeUnit.SECONDS), 3500, 3600);
    expect(template.delete("counted"), true);
    RedisAtomicLong atomic = new RedisAtomicLong("counted", factory, 5);
    expect(atomic.decrementAndGet(), 4L);
    expect(template.opsForValue().setIfAbsent("once", "x", Duration.ofHours(1)), true);
    expect(template.opsForValue().setIfAbsent("once", "y", Duration.ofHours(1)), false);
  }

  private void transaction() {
    SessionCallback<List<Object>> session =
        new SessionCallback<>() {
          @Override
          @SuppressWarnings("unchecked")
          public <K, V> List<Object> execute(RedisOperations<K, V> any) throws DataAccessException {
            RedisOperations<String, String> operations = (RedisOperations<String, String>) any;
            operations.multi();
            operations.opsForZSet().add("session", "a", 1);
            operations.opsForZSet().add("session", "b", 2);
            operations.opsForZSet().removeRangeByScore("session", 0, 1);
            operations.opsForZSet().zCard("session");
            operations.expire("session", Duration.ofHours(1));
            return operations.exec();
          }
        };
    expect(template.execute(session), List.of(true, true, 1L, 1L, true));
  }

  private void pipeline() {
    RedisCallback<Object> calls =
        connection -> {
          for (int i = 0; i < 100; i++) {
            connection.stringCommands().incr("pipelined".getBytes(StandardCharsets.UTF_8));
          }
          return null;
        };
    List<Object> replies = template.executePipelined(calls);
    expect(replies.size(), 100);
    expect(replies.get(99), 100L);
  }

  private void listener() throws Exception {
    LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
    RedisMessageListenerContainer container = new RedisMessageListenerContainer();
    container.setConnectionFactory(factory);
    container.afterPropertiesSet();
    container.addMessageListener(
        (Message message, byte[] pattern) -> heard.add(message.toString()),
        new ChannelTopic("spring"));
    container.start();
    expect(template.convertAndSend("spring", "one"), 1L);
    expect(String.valueOf(heard.poll(20, TimeUnit.SECONDS)), "one");
    container.stop();
  }

  /** What docs/migrating/java.md writes instead of a token bucket's script. */
  private void nativeBucket() {
    String script = "return redis.call('TB.ACQUIRE', KEYS[1], unpack(ARGV))";
    expect(execute(script, "native", "100", "10", "1", "3"), List.of(0L, 100L, 97L, -1L, 1L));
    expect(executeReactive(script, "native", "100", "10", "1", "200").get(0), 1L);
  }

  private int run(Report report) {
    new ScriptChecks(this::execute, this::executeReactive).run(report);
    report.check("result-types", this::resultTypes);
    report.check("script-flush", this::flush);
    report.check("counter-and-expiry", this::counterAndExpiry);
    report.check("transaction", this::transaction);
    report.check("pipeline", this::pipeline);
    report.check("listener", this::listener);
    report.check("native-bucket", () -> Report.natively(this::nativeBucket));
    return report.code();
  }

  public static void main(String[] args) {
    Report report = new Report().version(StringRedisTemplate.class);
    System.exit(new SpringDataScripts().run(report));
  }
}
