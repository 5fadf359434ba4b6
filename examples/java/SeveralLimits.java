import java.nio.charset.StandardCharsets;
import java.util.List;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;

/**
 * Several limits at once: per second and per day of a user, and per address. Either all
 * of them are charged, or none.
 *
 * <p>Needs Jedis 7.2 on the class path (before: JedisPooled). REDIS_URL says where the server is.
 */
public class SeveralLimits {
  static final ProtocolCommand MULTI = () -> "RL.MULTI".getBytes(StandardCharsets.UTF_8);
  static final ProtocolCommand THROTTLE = () -> "CL.THROTTLE".getBytes(StandardCharsets.UTF_8);

  /** The limit that is in the way, or null. */
  @SuppressWarnings("unchecked")
  static String allow(UnifiedJedis jedis, String user, String address) {
    String[] keys = {user + ":second", user + ":day", "ip:" + address};
    List<Object> reply =
        (List<Object>)
            jedis.sendCommand(
                MULTI, "3", keys[0], keys[1], keys[2],
                "TB", "10", "5", "1", // 5 per second, bursts of 10
                "SW", "12", "86400", "FIXED", // 12 per day
                "CL", "99", "100", "60", // 100 per minute from one address
                "WITHDETAILS");
    List<Long> binding = (List<Long>) reply.get(0);
    List<List<Long>> each = (List<List<Long>>) reply.get(1);
    for (int i = 0; i < keys.length; i++) {
      if (each.get(i).get(0) == 1) {
        return keys[i] + ", retry after " + binding.get(3) + " s";
      }
    }
    return null;
  }

  public static void main(String[] args) {
    String url = System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379");
    try (RedisClient jedis = RedisClient.create(url)) {
      jedis.del("bob:second", "bob:day", "ip:192.0.2.7");
      int passed = 0;
      String refused;
      while ((refused = allow(jedis, "bob", "192.0.2.7")) == null) {
        passed++;
      }
      System.out.println(passed + " passed, then " + refused);
      List<?> address =
          (List<?>) jedis.sendCommand(THROTTLE, "ip:192.0.2.7", "99", "100", "60", "0");
      System.out.println(address.get(2) + " left for the address");
    }
  }
}
