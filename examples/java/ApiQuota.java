import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;

/**
 * An API quota per user: 100 requests per minute, and the headers that tell of it.
 *
 * <p>Needs Jedis 7.2 on the class path (before: JedisPooled). REDIS_URL says where the server is.
 */
public class ApiQuota {
  static final long LIMIT = 100;
  static final long WINDOW = 60; // seconds
  static final ProtocolCommand ALLOW = () -> "SW.ALLOW".getBytes(StandardCharsets.UTF_8);

  /** The headers to answer with; Retry-After is among them if the answer is 429. */
  @SuppressWarnings("unchecked")
  static Map<String, String> check(UnifiedJedis jedis, String user) {
    List<Long> reply =
        (List<Long>) jedis.sendCommand(ALLOW, "api:" + user, "" + LIMIT, "" + WINDOW);
    Map<String, String> headers = new LinkedHashMap<>();
    headers.put("RateLimit-Policy", "\"user\";q=" + reply.get(1) + ";w=" + WINDOW);
    boolean limited = reply.get(0) == 1;
    headers.put("RateLimit", "\"user\";r=" + reply.get(2) + ";t=" + reply.get(limited ? 3 : 4));
    if (limited) {
      headers.put("Retry-After", "" + reply.get(3));
    }
    return headers;
  }

  public static void main(String[] args) {
    String url = System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379");
    try (RedisClient jedis = RedisClient.create(url)) {
      jedis.del("api:alice");
      for (int request = 1; request <= LIMIT + 1; request++) {
        Map<String, String> headers = check(jedis, "alice");
        if (request == 1 || request >= LIMIT) {
          String retry = headers.get("Retry-After");
          System.out.println(
              request + (retry == null ? " 200 " : " 429 ") + headers.get("RateLimit")
                  + " " + (retry == null ? "-" : retry));
        }
      }
    }
  }
}
