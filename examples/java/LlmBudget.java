import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.function.Supplier;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;

/**
 * A budget of LLM tokens per team: reserve an estimate, then commit the real cost.
 *
 * <p>Needs Jedis 7.2 on the class path (before: JedisPooled). REDIS_URL says where the server is.
 */
public class LlmBudget {
  static final ProtocolCommand ACQUIRE = () -> "TB.ACQUIRE".getBytes(StandardCharsets.UTF_8);
  static final ProtocolCommand COMMIT = () -> "RL.COMMIT".getBytes(StandardCharsets.UTF_8);

  /** What a model answered, and the tokens it took. */
  record Completion(String answer, long tokens) {}

  final UnifiedJedis jedis;

  LlmBudget(UnifiedJedis jedis) {
    this.jedis = jedis;
  }

  /** 100,000 tokens at once, and as many per minute. */
  @SuppressWarnings("unchecked")
  List<Long> acquire(String team, long tokens, String... options) {
    List<String> args =
        new ArrayList<>(List.of("llm:" + team, "100000", "100000", "60", "" + tokens));
    args.addAll(List.of(options));
    return (List<Long>) jedis.sendCommand(ACQUIRE, args.toArray(String[]::new));
  }

  String complete(String team, long estimate, Supplier<Completion> model) {
    String call = UUID.randomUUID().toString();
    List<Long> reply = acquire(team, estimate, "RESERVE", call, "600"); // 10 min, then it comes back
    if (reply.get(0) == 1) {
      throw new IllegalStateException("over budget, retry after " + reply.get(3) + " s");
    }
    long used = 0; // if the model fails, all of the estimate goes back
    try {
      Completion done = model.get();
      used = done.tokens();
      return done.answer();
    } finally {
      // More than the estimate is charged even if that overdraws the budget: the next
      // calls wait for it. Less is given back.
      jedis.sendCommand(COMMIT, "llm:" + team, call, "" + used);
    }
  }

  String left(String team) {
    List<Long> reply = acquire(team, 0);
    return reply.get(2) + " left, full in " + reply.get(4) + " s";
  }

  public static void main(String[] args) {
    String url = System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379");
    try (RedisClient jedis = RedisClient.create(url)) {
      jedis.del("llm:research");
      LlmBudget budget = new LlmBudget(jedis);
      String answer = budget.complete("research", 20000, () -> new Completion("short answer", 4500));
      System.out.println(answer + " - " + budget.left("research"));
      answer = budget.complete("research", 20000, () -> new Completion("long answer", 110000));
      System.out.println(answer + " - " + budget.left("research"));
      try {
        budget.complete("research", 20000, () -> new Completion("not called", 0));
      } catch (IllegalStateException over) {
        System.out.println(over.getMessage());
      }
    }
  }
}
