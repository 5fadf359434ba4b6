package compat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The checks that every Java client has to pass, and how they are reported: one line per check on
 * standard output (see README.md two folders up).
 */
final class Checks {
  /** A check that throws has failed. */
  interface Check {
    void run() throws Exception;
  }

  static final List<Long> FRESH = List.of(0L, 16L, 15L, -1L, 2L);
  private static final String USAGE =
      "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";
  // A key with a NUL, a line end and bytes that are not UTF-8.
  private static final byte[] BINARY_KEY = {0, (byte) 0xff, '\r', '\n', (byte) 0x80, ' ', 'k'};
  // How long a client may take to find a restarted server.
  private static final Duration RECONNECT_WITHIN = Duration.ofSeconds(20);

  private final Adapter adapter;
  private final BufferedReader parent =
      new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
  private boolean failed;

  Checks(Adapter adapter) {
    this.adapter = adapter;
  }

  static void say(String line) {
    System.out.println(line.replace("\r", "\\r").replace("\n", "\\n"));
    System.out.flush();
  }

  static void expect(Object got, Object want) {
    if (!want.equals(got)) {
      throw new IllegalStateException("got " + got + ", want " + want);
    }
  }

  /** Runs one check and reports it. */
  void check(String name, Check check) {
    try {
      check.run();
      say("ok " + name);
    } catch (Exception | LinkageError why) {
      failed = true;
      say("FAIL " + name + ": " + why);
    }
  }

  /** Runs everything in order and returns the exit code. */
  int run() throws Exception {
    check("connect", this::ping);
    check("throttle-allowed", this::allowed);
    check("throttle-denied", this::denied);
    check("pipeline-100", this::pipeline);
    check("error-usage", this::errorUsage);
    check("error-argument", this::errorArgument);
    check("error-unknown-command", this::errorUnknownCommand);
    check("error-in-pipeline", this::errorInPipeline);
    check("binary-key", () -> oddKey(BINARY_KEY));
    check("empty-key", () -> oddKey(new byte[0]));
    adapter.extra(this);
    check("reconnect", this::reconnect);
    Matcher resp =
        Pattern.compile("\\bresp=(\\d)")
            .matcher((String) adapter.call("CLIENT", Adapter.args("INFO")));
    say("info resp " + (resp.find() ? resp.group(1) : "?"));
    return failed ? 1 : 0;
  }

  private Object throttle(Object... args) throws Exception {
    return adapter.call("CL.THROTTLE", Adapter.args(args));
  }

  private static List<?> firstThree(Object reply) {
    return reply instanceof List<?> list && list.size() == 5
        ? list.subList(0, 3)
        : List.of("not five values", reply);
  }

  private void ping() throws Exception {
    expect(adapter.call("PING"), "PONG");
  }

  private void allowed() throws Exception {
    expect(throttle("allowed", 15, 30, 60), FRESH);
    expect(firstThree(throttle("allowed", 15, 30, 60, 2)), List.of(0L, 16L, 13L));
  }

  private void denied() throws Exception {
    expect(throttle("denied", 0, 1, 3600), List.of(0L, 1L, 0L, -1L, 3600L));
    Object got = throttle("denied", 0, 1, 3600);
    expect(firstThree(got), List.of(1L, 1L, 0L));
    long retry = (Long) ((List<?>) got).get(3);
    expect(((List<?>) got).get(4), retry);
    expect(retry >= 3500 && retry <= 3600, true);
  }

  private void pipeline() throws Exception {
    byte[][] call = Adapter.args("pipeline", 99, 100, 3600);
    List<Object> replies = adapter.pipeline("CL.THROTTLE", Collections.nCopies(100, call));
    expect(replies.size(), 100);
    for (int i = 0; i < 100; i++) {
      expect(firstThree(replies.get(i)), List.of(0L, 100L, 99L - i));
    }
  }

  private void expectError(Object got, String... parts) {
    if (!adapter.isReplyError(got)) {
      throw new IllegalStateException("got " + got + ", want the client's type of an error reply");
    }
    String text = ((Exception) got).getMessage();
    for (String part : parts) {
      if (!text.contains(part)) {
        throw new IllegalStateException("the error text '" + text + "' lacks " + part);
      }
    }
  }

  private Object outcome(String command, Object... args) {
    try {
      return adapter.call(command, Adapter.args(args));
    } catch (Exception e) {
      return e;
    }
  }

  private void errorUsage() {
    Object got = outcome("CL.THROTTLE", "key-only");
    expectError(got, "Cell error: ", USAGE);
    expect(((Exception) got).getMessage().startsWith("Cell error: "), true);
  }

  private void errorArgument() {
    expectError(
        outcome("CL.THROTTLE", "key", "many", 30, 60),
        "Cell error: ",
        "Couldn't parse as integer: many");
  }

  private void errorUnknownCommand() throws Exception {
    expectError(
        outcome("CL.NOSUCH", "a", "b"),
        "unknown command 'CL.NOSUCH', with args beginning with: 'a' 'b'");
    ping();
  }

  private void errorInPipeline() throws Exception {
    byte[][] good = Adapter.args("error-in-pipeline", 15, 30, 60);
    List<Object> replies =
        adapter.pipeline("CL.THROTTLE", List.of(good, Adapter.args("key-only"), good));
    expect(replies.get(0), FRESH);
    expectError(replies.get(1), "Cell error: ", USAGE);
    expect(firstThree(replies.get(2)), List.of(0L, 16L, 14L));
  }

  private void oddKey(byte[] key) throws Exception {
    expect(throttle(key, 15, 30, 60), FRESH);
    expect(firstThree(throttle(key, 15, 30, 60)), List.of(0L, 16L, 14L));
    expect(adapter.call("DEL", key), 1L);
    expect(throttle(key, 15, 30, 60), FRESH);
  }

  private void reconnect() throws IOException, InterruptedException {
    say("RESTART");
    expect(parent.readLine(), "RESTARTED");
    Instant deadline = Instant.now().plus(RECONNECT_WITHIN);
    Object got = outcome("CL.THROTTLE", "reconnect", 15, 30, 60);
    // The client learns of the broken connection by using it.
    while (got instanceof Exception && !adapter.isReplyError(got)) {
      if (Instant.now().isAfter(deadline)) {
        break;
      }
      Thread.sleep(50);
      got = outcome("CL.THROTTLE", "reconnect", 15, 30, 60);
    }
    expect(got, FRESH);
  }

  /** The server's host. */
  static String host() {
    return address().substring(0, address().lastIndexOf(':'));
  }

  /** The server's port. */
  static int port() {
    return Integer.parseInt(address().substring(address().lastIndexOf(':') + 1));
  }

  /** The protocol to ask for, or 0 for the client's default. */
  static int protocol() {
    String asked = System.getenv().getOrDefault("CELL_RESP", "");
    return asked.isEmpty() ? 0 : Integer.parseInt(asked);
  }

  private static String address() {
    return System.getenv("CELL_ADDR");
  }
}
