import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
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

  /** The binding reply, and each limit's own by its name. */
  record Answer(List<Long> binding, Map<String, List<Long>> each) {
    boolean limited() {
      return binding.get(0) == 1;
    }
  }

  /** Charges all three limits, or none. */
  @SuppressWarnings("unchecked")
  static Answer charge(UnifiedJedis jedis, String user, String address) {
    List<Object> reply =
        (List<Object>)
            jedis.sendCommand(
                MULTI, "3", user + ":second", user + ":day", "ip:" + address,
                "TB", "10", "5", "1", // 5 per second, bursts of 10
                "SW", "12", "86400", "FIXED", // 12 per day
                "CL", "99", "100", "60", // 100 per minute from one address
                "WITHDETAILS");
    List<List<Long>> details = (List<List<Long>>) reply.get(1);
    Map<String, List<Long>> each = new LinkedHashMap<>();
    for (String name : List.of("second", "day", "address")) {
      each.put(name, details.get(each.size()));
    }
    return new Answer((List<Long>) reply.get(0), each);
  }

  /** Remaining and reset of one limit; of one in the way the time until a call may pass. */
  static String header(String name, List<Long> reply) {
    return "\"" + name + "\";r=" + reply.get(2) + ";t=" + reply.get(reply.get(0) == 1 ? 3 : 4);
  }

  /** What to answer with: remaining and reset of all limits, side by side. */
  static Map<String, String> headers(Answer answer) {
    Map<String, String> found = new LinkedHashMap<>();
    found.put(
        "RateLimit",
        answer.each.entrySet().stream()
            .map(e -> header(e.getKey(), e.getValue()))
            .collect(Collectors.joining(", ")));
    if (answer.limited()) {
      found.put("Retry-After", "" + answer.binding.get(3)); // the longest of those in the way
    }
    return found;
  }

  public static void main(String[] args) {
    String url = System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379");
    try (RedisClient jedis = RedisClient.create(url)) {
      jedis.del("bob:second", "bob:day", "ip:192.0.2.7");
      int passed = 0;
      Answer answer;
      while (!(answer = charge(jedis, "bob", "192.0.2.7")).limited()) {
        passed++;
      }
      System.out.print(passed + " passed, then");
      answer.each.forEach((name, reply) -> System.out.print(reply.get(0) == 1 ? " " + name : ""));
      System.out.println();
      headers(answer).forEach((name, value) -> System.out.println(name + ": " + value));
    }
  }
}
