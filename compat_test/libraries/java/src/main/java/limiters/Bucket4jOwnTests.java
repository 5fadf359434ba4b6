package limiters;

import io.github.bucket4j.Bucket;
import io.github.bucket4j.redis.jedis.Bucket4jJedis;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.github.bucket4j.redis.redisson.Bucket4jRedisson;
import io.github.bucket4j.tck.AbstractDistributedBucketTest;
import io.github.bucket4j.tck.ProxyManagerSpec;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.command.CommandAsyncExecutor;
import redis.clients.jedis.JedisPooled;

/**
 * The tests that Bucket4j publishes for its back ends, over one of jedis, lettuce and redisson. Each
 * test method is a check. Jedis is not asynchronous, so there the asynchronous ones return at once.
 */
final class Bucket4jOwnTests extends AbstractDistributedBucketTest {
  private static String name() {
    return UUID.randomUUID().toString();
  }

  private static byte[] key() {
    return name().getBytes(StandardCharsets.UTF_8);
  }

  /** What the tests have to know of a back end. */
  private static ProxyManagerSpec<?, ?, ?> spec(String client) {
    switch (client) {
      case "jedis":
        JedisPooled jedis = JedisScripts.pooled();
        return new ProxyManagerSpec<>(
                client, Bucket4jOwnTests::key, () -> Bucket4jJedis.casBasedBuilder(jedis))
            .checkExpiration();
      case "lettuce":
        RedisClient lettuce = RedisClient.create(RedisURI.create(Report.host(), Report.port()));
        return new ProxyManagerSpec<>(
                client, Bucket4jOwnTests::key, () -> Bucket4jLettuce.casBasedBuilder(lettuce))
            .checkExpiration();
      default:
        CommandAsyncExecutor redisson = Bucket4jProgram.executor();
        return new ProxyManagerSpec<>(
                client, Bucket4jOwnTests::name, () -> Bucket4jRedisson.casBasedBuilder(redisson))
            .checkExpiration();
    }
  }

  private static void run(Method test, ProxyManagerSpec<?, ?, ?> spec) throws Exception {
    try {
      test.invoke(new Bucket4jOwnTests(), spec);
    } catch (InvocationTargetException failed) {
      // An assertion is an error to JUnit, and to a report an exception as any other.
      throw new IllegalStateException(failed.getCause());
    }
  }

  public static void main(String[] args) throws InterruptedException {
    Report report = new Report().version(Bucket.class);
    System.setOut(System.err); // the tests print, too
    ProxyManagerSpec<?, ?, ?> spec = spec(args[0]);
    List<Method> tests =
        Arrays.stream(AbstractDistributedBucketTest.class.getMethods())
            .filter(method -> method.getName().startsWith("test"))
            .sorted(Comparator.comparing(Method::getName))
            .toList();
    // Most of their time is sleep, and each has buckets of its own.
    ExecutorService pool = Executors.newFixedThreadPool(6);
    for (Method test : tests) {
      pool.execute(() -> report.check(test.getName(), () -> run(test, spec)));
    }
    pool.shutdown();
    System.exit(pool.awaitTermination(2, TimeUnit.MINUTES) ? report.code() : 1);
  }
}
