# frozen_string_literal: true

# What to do when the limiter does not answer: decide without it, and soon.
#
# Reads lines "open" or "closed" and says for each whether a request may go ahead, who
# decided that, and after how many milliseconds. Needs redis-rb. REDIS_URL says where the
# server is (redis://127.0.0.1:6379).

require "redis"

def connect(url)
  Redis.new(url: url, timeout: 0.05, reconnect_attempts: 0)
end

# How errors begin which say that no limit is decided now.
AWAY = /\A(UNAVAILABLE|LOADING|BUSY|MISCONF|NOREPLICAS|READONLY|MASTERDOWN)\b/

# Returns whether key may go ahead, and whether the limiter has said so.
def allowed(redis, key, fail_open)
  limited, = redis.call("CL.THROTTLE", key, 15, 30, 60)
  [limited.zero?, true]
rescue Redis::BaseConnectionError
  [fail_open, false]
rescue Redis::CommandError => e
  return [fail_open, false] if AWAY.match?(e.message)

  [false, true] # a client may have caused it by its key: log it
end

redis = connect(ENV.fetch("REDIS_URL", "redis://127.0.0.1:6379"))
$stdout.sync = true
$stdin.each_line(chomp: true) do |line|
  began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
  ok, answered = allowed(redis, "away:ruby", line == "open")
  took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) - began
  puts [ok ? "allowed" : "refused", answered ? "answered" : "away", took].join(" ")
end
