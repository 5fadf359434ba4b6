import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

/**
 * What to do when the limiter does not answer: decide without it, and soon.
 *
 * <p>Reads lines "open" or "closed" and says for each whether a request may go ahead, who decided
 * that, and after how many milliseconds. Needs Jedis 7.2. REDIS_URL says where the server is.
 */
public class WhenAway {
  static final ProtocolCommand THROTTLE = () -> "CL.THROTTLE".getBytes(StandardCharsets.UTF_8);

  // How errors begin which say that no limit is decided now.
  static final Pattern AWAY =
      Pattern.compile("(UNAVAILABLE|LOADING|BUSY|MISCONF|NOREPLICAS|READONLY|MASTERDOWN)\\b");

  record Decision(boolean allowed, boolean answered) {}

  static UnifiedJedis connect(URI url) {
    ConnectionPoolConfig pool = new ConnectionPoolConfig();
    pool.setMaxWait(Duration.ofMillis(50)); // the default waits for a free connection for ever
    return RedisClient.builder()
        .hostAndPort(new HostAndPort(url.getHost(), url.getPort()))
        .clientConfig(
            DefaultJedisClientConfig.builder()
                .connectionTimeoutMillis(50)
                .socketTimeoutMillis(50)
                .build())
        .poolConfig(pool)
        .build();
  }

  static Decision allowed(UnifiedJedis jedis, String key, boolean failOpen) {
    try {
      List<?> reply = (List<?>) jedis.sendCommand(THROTTLE, key, "15", "30", "60");
      return new Decision((Long) reply.get(0) == 0, true);
    } catch (JedisDataException error) {
      if (AWAY.matcher(error.getMessage()).lookingAt()) {
        return new Decision(failOpen, false);
      }
      return new Decision(false, true); // a client may have caused it by its key: log it
    } catch (JedisException away) {
      return new Decision(failOpen, false);
    }
  }

  public static void main(String[] args) throws Exception {
    URI url = URI.create(System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379"));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    try (UnifiedJedis jedis = connect(url)) {
      for (String line; (line = in.readLine()) != null; ) {
        long began = System.nanoTime();
        Decision d = allowed(jedis, "away:java", line.equals("open"));
        long took = (System.nanoTime() - began) / 1_000_000;
        System.out.println(
            (d.allowed ? "allowed" : "refused") + (d.answered ? " answered " : " away ") + took);
      }
    }
  }
}
