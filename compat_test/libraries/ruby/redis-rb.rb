# frozen_string_literal: true

# Drives redis-rb.

require "digest/sha1"
require "redis"
require_relative "report"

# EVALSHA, and EVAL when the server does not know the script.
def window(redis, key, limit, millis)
  redis.evalsha(Digest::SHA1.hexdigest(WINDOW), [key], [limit, millis])
rescue Redis::CommandError => e
  raise unless e.message.start_with?("NOSCRIPT")

  redis.eval(WINDOW, keys: [key], argv: [limit, millis])
end

redis = connection

run(
  Redis::VERSION,
  "script-limit" => lambda do
    4.downto(0) { |left| same([1, left], window(redis, "script", 5, 2000)) }
    admitted, wait = window(redis, "script", 5, 2000)
    that(admitted.zero? && wait.between?(1, 2000), "got #{admitted} #{wait}")
    sleep(wait / 1000.0 + 0.1)
    same([1, 4], window(redis, "script", 5, 2000))
    same(1, redis.del("script"))
    same([1, 4], window(redis, "script", 5, 2000))
  end,
  "script-is-loaded-when-missing" => lambda do
    same("OK", redis.script(:flush))
    text = raised(Redis::CommandError) { redis.evalsha("0" * 40) }
    same("NOSCRIPT No matching script. Please use EVAL.", text)
    same([1, 1], window(redis, "missing", 2, 60_000))
    same([true, false], redis.script(:exists, [Digest::SHA1.hexdigest(WINDOW), "0" * 40]))
    same(Digest::SHA1.hexdigest("return 1"), redis.script(:load, "return 1"))
  end,
  "processes-share-limit" => lambda do
    admitted = in_processes do
      own = connection
      40.times.sum { window(own, "shared", 50, 60_000).first }
    end
    same(50, admitted)
  end,
  "threads-share-connection" => lambda do
    threads = Array.new(8) { Thread.new { 10.times.sum { window(redis, "threads", 30, 60_000).first } } }
    same(30, threads.sum(&:value))
  end,
  "counter" => lambda do
    same(1, redis.incr("counter"))
    same(true, redis.expire("counter", 60))
    same(4, redis.incrby("counter", 3))
    same([true, false], [redis.set("lock", "me", nx: true, ex: 60), redis.set("lock", "you", nx: true, ex: 60)])
    that(redis.ttl("lock").positive?, "the lock does not expire")
  end,
  "pipelined" => lambda do
    same((1..100).to_a, redis.pipelined { |pipe| 100.times { pipe.incr("piped") } })
    # An error in the middle leaves its neighbours alone.
    text = raised(Redis::CommandError) do
      redis.pipelined do |pipe|
        pipe.incr("piped")
        pipe.lpush("piped", "x")
        pipe.incr("piped")
      end
    end
    that(text.start_with?("WRONGTYPE "), text)
    same("102", redis.get("piped"))
  end,
  "multi" => lambda do
    got = redis.multi do |tx|
      tx.zremrangebyscore("log", "-inf", "(940.5")
      tx.zadd("log", 1000.5, "a")
      tx.zcard("log")
      tx.zrange("log", 0, -1, with_scores: true)
      tx.expire("log", 60)
    end
    same([0, true, 1, [["a", 1000.5]], true], got)
  end,
  "watched-transactions-share-limit" => lambda do
    admitted = in_processes do
      own = connection
      10.times.sum do
        taken = nil
        taken = own.watch("tokens") do
          if own.get("tokens").to_i < 10
            own.multi { |tx| tx.incr("tokens") }&.size
          else
            own.unwatch
            0
          end
        end while taken.nil?
        taken
      end
    end
    same([10, "10"], [admitted, redis.get("tokens")])
  end,
  "subscribe" => lambda do
    got = []
    listener = connection
    listener.subscribe("opened") do |on|
      on.subscribe { |channel, count| got << [channel, count, redis.publish(channel, "now")] }
      on.message do |channel, message|
        got << [channel, message]
        listener.unsubscribe
      end
      on.unsubscribe { |channel, count| got << [channel, count] }
    end
    same([["opened", 1, 1], %w[opened now], ["opened", 0]], got)
    same("PONG", listener.ping)
  end,
  "errors" => lambda do
    redis.set("text", "abc")
    text = raised(Redis::CommandError) { redis.hget("text", "f") }
    that(text.start_with?("WRONGTYPE "), text)
    text = raised(Redis::CommandError) { redis.eval("return redis.error_reply('LIMITED come back later')") }
    same("LIMITED come back later", text)
    same("abc", redis.get("text"))
  end,
  "native-throttle" => lambda do
    4.downto(0) do |left|
      same([0, 5, left, -1], redis.call("CL.THROTTLE", "native", 4, 5, 3600).first(4))
    end
    got = redis.call("CL.THROTTLE", "native", 4, 5, 3600)
    same([1, 5, 0], got.first(3))
    that(got[3].between?(600, 720) && got[4] > got[3], got.inspect)
    text = raised(Redis::CommandError) { redis.call("CL.THROTTLE", "native", "x", 5, 60) }
    that(text.include?("parse as integer: x"), text)
  end
)
