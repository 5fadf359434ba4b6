package compat;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.LettuceVersion;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisLoadingException;
import io.lettuce.core.RedisReadOnlyException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.Delay;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

/**
 * Counts through failovers with the support of Lettuce for Sentinel; what it reads from its
 * environment and reports is said in the README of the clients. A call is made once: Lettuce would
 * make it again by itself, and then nobody could say how often it ran.
 */
final class StandbyProgram {
  /** How many threads share the pace and the connection. */
  private static final int WORKERS = 2;

  private static final Duration CALL_WITHIN = Duration.ofSeconds(2);
  private static final Duration AFTER_FAILURE = Duration.ofMillis(20);

  /** The command that asks about the hot limit, for which Lettuce has no constant. */
  private record Named(String name) implements ProtocolKeyword {
    @Override
    public byte[] getBytes() {
      return name.getBytes(StandardCharsets.US_ASCII);
    }
  }

  private final StatefulRedisConnection<String, String> connection;
  private final String counter = System.getenv("CELL_KEY");
  private final String[] hotCall = System.getenv("CELL_HOT").split(" ");
  private volatile boolean ending;

  // The object guards these.
  private long acked;
  private long unknown;
  private long refused;
  private long last = System.nanoTime();
  private long longest;
  private long mark;
  private boolean marked;
  private final List<long[]> hot = new ArrayList<>();
  private final Map<String, Integer> errors = new TreeMap<>();

  private StandbyProgram(StatefulRedisConnection<String, String> connection) {
    this.connection = connection;
  }

  private void work(long interval) {
    long due = System.nanoTime();
    for (int made = 1; !ending; made++) {
      if (!once(made % 4 == 0)) {
        LockSupport.parkNanos(AFTER_FAILURE.toNanos());
      }
      // Calls that a failure kept from being made are not made later.
      due = Math.max(due + interval, System.nanoTime() - interval);
      LockSupport.parkNanos(due - System.nanoTime());
    }
  }

  private boolean once(boolean isHot) {
    long called = System.nanoTime();
    try {
      boolean admitted = false;
      if (isHot) {
        admitted = throttle().get(0).equals(0L);
      } else {
        connection.sync().incr(counter);
      }
      answered(called, isHot, admitted);
      return true;
    } catch (RedisException e) {
      failed(e, isHot);
      return false;
    }
  }

  private List<Object> throttle() {
    CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
    Arrays.stream(hotCall).skip(1).forEach(args::add);
    return connection
        .sync()
        .dispatch(new Named(hotCall[0]), new NestedMultiOutput<>(StringCodec.UTF8), args);
  }

  private synchronized void answered(long called, boolean isHot, boolean admitted) {
    long returned = System.nanoTime();
    longest = Math.max(longest, returned - last);
    last = returned;
    if (!isHot) {
      acked++;
    } else if (admitted) {
      hot.add(new long[] {called, returned});
    }
    if (marked && called >= mark) {
      marked = false;
      System.out.println("answered");
    }
  }

  private synchronized void failed(RedisException e, boolean isHot) {
    errors.merge(e.getClass().getSimpleName(), 1, Integer::sum);
    if (isHot) {
      return;
    }
    if (neverRan(e)) {
      refused++;
    } else {
      unknown++;
    }
  }

  /** Whether a call has certainly not run: the server says so, or Lettuce had no connection. */
  private static boolean neverRan(RedisException e) {
    String text = String.valueOf(e.getMessage());
    return e instanceof RedisReadOnlyException
        || e instanceof RedisLoadingException
        || text.startsWith("MASTERDOWN ")
        || text.startsWith("Currently not connected");
  }

  private synchronized void mark() {
    marked = true;
    mark = System.nanoTime();
  }

  private synchronized String report() {
    String calls =
        hot.stream().map(c -> "[" + c[0] + "," + c[1] + "]").collect(Collectors.joining(","));
    String failures =
        errors.entrySet().stream()
            .map(e -> "\"" + e.getKey() + "\":" + e.getValue())
            .collect(Collectors.joining(","));
    return String.format(
        "{\"library\":\"lettuce\",\"version\":\"%s\",\"acked\":%d,\"unknown\":%d,\"refused\":%d,"
            + "\"longest_ms\":%d,\"hot\":[%s],\"errors\":{%s}}",
        LettuceVersion.getVersion(), acked, unknown, refused, longest / 1_000_000, calls, failures);
  }

  private static RedisURI sentinels() {
    RedisURI.Builder uri = RedisURI.builder().withSentinelMasterId(System.getenv("CELL_MASTER"));
    for (String address : System.getenv("CELL_SENTINELS").split(",")) {
      String[] parts = address.split(":");
      uri.withSentinel(parts[0], Integer.parseInt(parts[1]));
    }
    return uri.withTimeout(CALL_WITHIN).build();
  }

  private static ClientOptions options() {
    return ClientOptions.builder()
        .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
        .replayFilter(command -> true)
        .socketOptions(SocketOptions.builder().connectTimeout(CALL_WITHIN).build())
        .timeoutOptions(TimeoutOptions.enabled(CALL_WITHIN))
        .build();
  }

  public static void main(String[] args) throws IOException, InterruptedException {
    ClientResources resources =
        ClientResources.builder().reconnectDelay(Delay.constant(Duration.ofMillis(50))).build();
    RedisClient client = RedisClient.create(resources, sentinels());
    client.setOptions(options());
    StandbyProgram program = new StandbyProgram(client.connect());
    long interval = (long) (WORKERS * 1e9 / Double.parseDouble(System.getenv("CELL_PACE")));
    List<Thread> workers = new ArrayList<>();
    for (int i = 0; i < WORKERS; i++) {
      Thread worker = new Thread(() -> program.work(interval));
      workers.add(worker);
      worker.start();
    }
    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      if (line.equals("mark")) {
        program.mark();
      }
    }
    program.ending = true;
    for (Thread worker : workers) {
      worker.join();
    }
    System.out.println(program.report());
    client.shutdown(0, 5, TimeUnit.SECONDS);
    resources.shutdown(0, 5, TimeUnit.SECONDS);
    System.exit(0);
  }
}
