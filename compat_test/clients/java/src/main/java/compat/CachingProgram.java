package compat;

import io.lettuce.core.LettuceVersion;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.CacheFrontend;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/** Drives the cache of Lettuce; what it reports is said in the README of the clients. */
final class CachingProgram {
  /** How long an invalidation may take on its way. */
  private static final long PATIENCE = Duration.ofSeconds(5).toNanos();

  private CachingProgram() {}

  public static void main(String[] args) throws InterruptedException {
    System.out.println("info library lettuce");
    System.out.println("info version " + LettuceVersion.getVersion());
    int rounds = Integer.parseInt(System.getenv("CELL_ROUNDS"));
    RedisClient client = RedisClient.create(RedisURI.create(Checks.host(), Checks.port()));
    RedisCommands<String, String> writer = client.connect().sync();
    RedisCommands<String, String> others = client.connect().sync();
    Map<String, String> kept = new ConcurrentHashMap<>();
    CacheFrontend<String, String> cache =
        ClientSideCaching.enable(
            CacheAccessor.forMap(kept), client.connect(), TrackingArgs.Builder.enabled());
    AtomicBoolean over = new AtomicBoolean();
    Thread noise =
        new Thread(
            () -> {
              for (int i = 0; !over.get(); i++) {
                others.set("noise:" + i % 4, Integer.toString(i));
              }
            });
    noise.start();
    int stale = 0;
    int hits = 0;
    for (int i = 0; i < rounds && stale < 3; i++) {
      String key = "cached:" + i % 8;
      if (i < 8) {
        writer.set(key, "first"); // it keeps nothing of a key that is not there
      }
      cache.get(key);
      hits += kept.containsKey(key) ? 1 : 0;
      cache.get("noise:" + i % 4);
      writer.set(key, Integer.toString(i));
      long end = System.nanoTime() + PATIENCE;
      while (!Objects.equals(cache.get(key), Integer.toString(i))) {
        if (System.nanoTime() - end > 0) {
          stale++;
          break;
        }
      }
    }
    over.set(true);
    noise.join();
    System.out.println(
        stale == 0 && hits > 0
            ? "ok never-stale"
            : "FAIL never-stale: " + stale + " stale, " + hits + " kept");
    client.shutdown(Duration.ZERO, Duration.ofSeconds(2));
    System.exit(stale == 0 && hits > 0 ? 0 : 1);
  }
}
