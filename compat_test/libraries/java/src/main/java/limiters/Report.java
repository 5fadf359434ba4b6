package limiters;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Reader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** What every program says on standard output (see README.md one folder up), and its tools. */
final class Report {
  /** A check that throws has failed. */
  interface Check {
    void run() throws Exception;
  }

  /** The pass-through that people used to reach redis-cell from a client without the command. */
  static final String PASS_THROUGH =
      "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])";

  // Kept, because a library may print for itself and be sent elsewhere.
  private static final PrintStream OUT = System.out;

  private volatile boolean failed;

  static String address() {
    return System.getenv("CELL_ADDR");
  }

  static String host() {
    return address().substring(0, address().lastIndexOf(':'));
  }

  static int port() {
    return Integer.parseInt(address().substring(address().lastIndexOf(':') + 1));
  }

  /** Says which version of a library runs: the one in the name of the jar that a class is from. */
  Report version(Class<?> of) {
    String path = of.getProtectionDomain().getCodeSource().getLocation().getPath();
    String jar = path.substring(path.lastIndexOf('/') + 1);
    say("info version " + jar.replaceFirst("^.*?-(\\d.*)\\.jar$", "$1"));
    return this;
  }

  private static void say(String line) {
    OUT.println(line.replace("\r", "\\r").replace("\n", "\\n"));
    OUT.flush();
  }

  void check(String name, Check check) {
    try {
      check.run();
      say("ok " + name);
    } catch (Exception | LinkageError why) {
      failed = true;
      say("FAIL " + name + ": " + why);
      why.printStackTrace();
    }
  }

  /** The exit code. */
  int code() {
    return failed ? 1 : 0;
  }

  static void expect(Object got, Object want) {
    if (!want.equals(got)) {
      throw new IllegalStateException("got " + got + ", want " + want);
    }
  }

  static void expectBetween(long got, long least, long most) {
    if (got < least || got > most) {
      throw new IllegalStateException(
          "got " + got + ", want between " + least + " and " + most);
    }
  }

  /** Expects that a call throws, with this text in its message or in a cause's. */
  static void expectError(String text, Check call) {
    try {
      call.run();
    } catch (Exception error) {
      for (Throwable cause = error; cause != null; cause = cause.getCause()) {
        if (String.valueOf(cause.getMessage()).contains(text)) {
          return;
        }
      }
      throw new IllegalStateException("the error lacks '" + text + "'", error);
    }
    throw new IllegalStateException("no error, want one with '" + text + "'");
  }

  /** How many of a number of calls in a row pass. */
  static int admitted(int calls, Callable<Boolean> call) throws Exception {
    int passed = 0;
    for (int i = 0; i < calls; i++) {
      passed += call.call() ? 1 : 0;
    }
    return passed;
  }

  /** How many calls pass if eight threads for each caller make ten calls each at once. */
  static int admittedInParallel(List<Callable<Boolean>> callers) throws Exception {
    int threads = 8 * callers.size();
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      CountDownLatch together = new CountDownLatch(threads);
      List<Future<Integer>> sums = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        Callable<Boolean> caller = callers.get(i % callers.size());
        sums.add(
            pool.submit(
                () -> {
                  together.countDown();
                  together.await();
                  return admitted(10, caller);
                }));
      }
      int passed = 0;
      for (Future<Integer> sum : sums) {
        passed += sum.get(60, TimeUnit.SECONDS);
      }
      return passed;
    } finally {
      pool.shutdownNow();
    }
  }

  /** Waits until something holds that has to come by itself, for at most 20 s. */
  static void eventually(String what, Callable<Boolean> holds) throws Exception {
    long start = System.nanoTime();
    while (!holds.call()) {
      if (millisSince(start) > 20_000) {
        throw new IllegalStateException("not within 20 s: " + what);
      }
      Thread.sleep(20);
    }
  }

  static long millisSince(long nanoTime) {
    return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanoTime);
  }

  /**
   * Expects the reply of {@link #PASS_THROUGH} to a first call with 15, 30, 60, 1. A server that
   * does not have the command has to say so to the caller.
   */
  static void expectThrottle(Callable<List<?>> call) throws Exception {
    if (!knowsThrottle()) {
      expectError("Unknown Redis command called from script", call::call);
      return;
    }
    List<Long> numbers = new ArrayList<>();
    for (Object number : call.call()) {
      numbers.add(((Number) number).longValue());
    }
    expect(numbers, List.of(0L, 16L, 15L, -1L, 2L));
  }

  /** Runs what only cellserver has; the caller has to hear it from another server. */
  static void natively(Check check) throws Exception {
    if (knowsThrottle()) {
      check.run();
    } else {
      expectError("", check);
    }
  }

  static boolean knowsThrottle() throws IOException {
    try (Socket socket = new Socket(host(), port())) {
      socket.getOutputStream().write("CL.THROTTLE\r\n".getBytes(StandardCharsets.US_ASCII));
      Reader reply = new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII);
      return !new BufferedReader(reply).readLine().contains("unknown command");
    }
  }
}
