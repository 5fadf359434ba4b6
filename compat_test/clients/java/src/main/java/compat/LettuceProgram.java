package compat;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.LettuceVersion;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.dynamic.Commands;
import io.lettuce.core.dynamic.RedisCommandFactory;
import io.lettuce.core.dynamic.annotation.Command;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Drives Lettuce: dispatch, a flushed batch, and the dynamic command interface. */
final class LettuceProgram implements Adapter {
  /** The form in which Lettuce users mostly call redis-cell; it consults COMMAND. */
  interface CellCommands extends Commands {
    @Command("CL.THROTTLE ?0 ?1 ?2 ?3 ?4")
    List<Object> throttle(String key, long burst, long count, long period, long quantity);
  }

  /** A command that Lettuce has no constant for. */
  private record Named(String name) implements ProtocolKeyword {
    @Override
    public byte[] getBytes() {
      return name.getBytes(StandardCharsets.US_ASCII);
    }

    @Override
    public String toString() {
      return name;
    }
  }

  private final RedisClient client =
      RedisClient.create(RedisURI.create(Checks.host(), Checks.port()));
  private final StatefulRedisConnection<byte[], byte[]> connection;

  private LettuceProgram() {
    if (Checks.protocol() != 0) {
      ProtocolVersion version =
          Checks.protocol() == 3 ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2;
      client.setOptions(ClientOptions.builder().protocolVersion(version).build());
    }
    connection = client.connect(ByteArrayCodec.INSTANCE);
  }

  private static CommandArgs<byte[], byte[]> encode(byte[][] args) {
    CommandArgs<byte[], byte[]> encoded = new CommandArgs<>(ByteArrayCodec.INSTANCE);
    for (byte[] arg : args) {
      encoded.add(arg);
    }
    return encoded;
  }

  private static CommandOutput<byte[], byte[], ?> outputFor(String command) {
    return switch (command) {
      case "PING", "CLIENT" -> new StatusOutput<>(ByteArrayCodec.INSTANCE);
      case "DEL" -> new IntegerOutput<>(ByteArrayCodec.INSTANCE);
      default -> new NestedMultiOutput<>(ByteArrayCodec.INSTANCE);
    };
  }

  @Override
  public Object call(String command, byte[]... args) {
    return connection.sync().dispatch(new Named(command), outputFor(command), encode(args));
  }

  @Override
  public List<Object> pipeline(String command, List<byte[][]> calls) throws Exception {
    connection.setAutoFlushCommands(false);
    List<RedisFuture<?>> sent = new ArrayList<>();
    for (byte[][] args : calls) {
      sent.add(connection.async().dispatch(new Named(command), outputFor(command), encode(args)));
    }
    connection.flushCommands();
    connection.setAutoFlushCommands(true);
    List<Object> replies = new ArrayList<>();
    for (RedisFuture<?> future : sent) {
      try {
        replies.add(future.get(10, TimeUnit.SECONDS));
      } catch (ExecutionException e) {
        replies.add(e.getCause());
      }
    }
    return replies;
  }

  @Override
  public boolean isReplyError(Object e) {
    return e != null && e.getClass() == RedisCommandExecutionException.class;
  }

  @Override
  public void extra(Checks checks) {
    checks.check("dynamic-interface", this::dynamicInterface);
  }

  private void dynamicInterface() {
    try (StatefulRedisConnection<String, String> own = client.connect()) {
      CellCommands cell = new RedisCommandFactory(own).getCommands(CellCommands.class);
      Checks.expect(cell.throttle("dynamic-interface", 15, 30, 60, 1), Checks.FRESH);
      Checks.expect(cell.throttle("dynamic-interface", 15, 30, 60, 99).get(0), 1L);
    }
  }

  @Override
  public void close() {
    connection.close();
    client.shutdown(0, 5, TimeUnit.SECONDS);
  }

  public static void main(String[] args) throws Exception {
    Checks.say("info version " + LettuceVersion.getVersion());
    int code;
    try (LettuceProgram adapter = new LettuceProgram()) {
      code = new Checks(adapter).run();
    }
    System.exit(code);
  }
}
