package compat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;

/** Drives Jedis: its pooled client, its pipeline, and a pool that tests what it lends. */
final class JedisProgram implements Adapter {
  private final JedisPooled jedis;

  private JedisProgram() {
    if (Checks.protocol() == 0) {
      jedis = new JedisPooled(Checks.host(), Checks.port());
      return;
    }
    RedisProtocol protocol = Checks.protocol() == 3 ? RedisProtocol.RESP3 : RedisProtocol.RESP2;
    jedis =
        new JedisPooled(
            new HostAndPort(Checks.host(), Checks.port()),
            DefaultJedisClientConfig.builder().protocol(protocol).build());
  }

  private static ProtocolCommand named(String command) {
    return () -> command.getBytes(StandardCharsets.UTF_8);
  }

  private static Object decode(Object reply) {
    return reply instanceof byte[] text ? new String(text, StandardCharsets.UTF_8) : reply;
  }

  @Override
  public Object call(String command, byte[]... args) {
    return decode(jedis.sendCommand(named(command), args));
  }

  @Override
  public List<Object> pipeline(String command, List<byte[][]> calls) {
    List<Response<Object>> sent = new ArrayList<>();
    try (Pipeline pipe = jedis.pipelined()) {
      calls.forEach(args -> sent.add(pipe.sendCommand(named(command), args)));
      pipe.sync();
    }
    List<Object> replies = new ArrayList<>();
    for (Response<Object> response : sent) {
      try {
        replies.add(response.get());
      } catch (JedisDataException e) {
        replies.add(e);
      }
    }
    return replies;
  }

  @Override
  public boolean isReplyError(Object e) {
    return e != null && e.getClass() == JedisDataException.class;
  }

  @Override
  public void extra(Checks checks) {
    checks.check("pool-test-on-borrow", this::testOnBorrow);
  }

  /** A pool that sends PING before it lends a connection, and the blocking Jedis class. */
  private void testOnBorrow() {
    JedisPoolConfig config = new JedisPoolConfig();
    config.setTestOnBorrow(true);
    config.setTestOnReturn(true);
    try (JedisPool pool = new JedisPool(config, Checks.host(), Checks.port());
        Jedis lent = pool.getResource()) {
      Checks.expect(
          lent.sendCommand(named("CL.THROTTLE"), "pool-test-on-borrow", "15", "30", "60"),
          Checks.FRESH);
    }
  }

  @Override
  public void close() {
    jedis.close();
  }

  private static String version() throws IOException {
    try (InputStream in =
        Jedis.class.getResourceAsStream("/META-INF/maven/redis.clients/jedis/pom.properties")) {
      Properties properties = new Properties();
      properties.load(in);
      return properties.getProperty("version");
    }
  }

  public static void main(String[] args) throws Exception {
    Checks.say("info version " + version());
    int code;
    try (JedisProgram adapter = new JedisProgram()) {
      code = new Checks(adapter).run();
    }
    System.exit(code);
  }
}
