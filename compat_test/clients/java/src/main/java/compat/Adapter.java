package compat;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** One client library as the checks see it. Replies are Long, String, or List of them. */
interface Adapter extends AutoCloseable {
  /** Sends one command; an error reply is thrown as the client throws it. */
  Object call(String command, byte[]... args) throws Exception;

  /** Sends the same command many times in one pipeline: per element a reply or the exception. */
  List<Object> pipeline(String command, List<byte[][]> calls) throws Exception;

  /** Whether this is exactly the type that the client uses for an error reply. */
  boolean isReplyError(Object e);

  /** Checks beyond those every client has to pass. */
  default void extra(Checks checks) {}

  @Override
  void close();

  /** The arguments as the UTF-8 bytes of their text. */
  static byte[][] args(Object... args) {
    byte[][] encoded = new byte[args.length][];
    for (int i = 0; i < args.length; i++) {
      encoded[i] =
          args[i] instanceof byte[] raw
              ? raw
              : String.valueOf(args[i]).getBytes(StandardCharsets.UTF_8);
    }
    return encoded;
  }
}
