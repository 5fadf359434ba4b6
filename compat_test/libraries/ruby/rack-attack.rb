# frozen_string_literal: true

# Drives Rack::Attack, the limiter middleware, with its counters on the server.

require "rack"
require "rack/attack"
require "redis"
require_relative "report"

PERIOD = 3
APP = Rack::Attack.new(->(_env) { [200, {}, ["served"]] })

Rack::Attack.cache.store = connection
Rack::Attack.throttled_response_retry_after_header = true
Rack::Attack.throttle("short", limit: 5, period: PERIOD) { |req| req.ip if req.path == "/short" }
Rack::Attack.throttle("long", limit: 10, period: 3600) { |req| req.ip if req.path == "/long" }
Rack::Attack.blocklist("fail2ban") do |req|
  Rack::Attack::Fail2Ban.filter(req.ip, maxretry: 3, findtime: 3600, bantime: 2) { req.path == "/secret" }
end
Rack::Attack.blocklist("allow2ban") do |req|
  Rack::Attack::Allow2Ban.filter("login:#{req.ip}", maxretry: 3, findtime: 3600, bantime: 60) { req.path == "/login" }
end

# Status and headers of one request.
def get(path, ip)
  APP.call(Rack::MockRequest.env_for(path, "REMOTE_ADDR" => ip)).first(2)
end

def status(path, ip)
  get(path, ip).first
end

# Windows are those of the clock: waits until the next of +period+ seconds began.
def next_window(period)
  sleep(period - Time.now.to_f % period + 0.05)
end

run(
  Gem.loaded_specs.fetch("rack-attack").version.to_s,
  "throttle" => lambda do
    next_window(PERIOD)
    same([200] * 5 + [429], Array.new(6) { status("/short", "10.0.0.1") })
    code, headers = get("/short", "10.0.0.1")
    wait = headers["retry-after"].to_i
    that(code == 429 && wait.between?(1, PERIOD), "got #{code}, told to wait #{wait} s")
    same(200, status("/short", "10.0.0.2"))
    sleep(wait + 0.1)
    same(200, status("/short", "10.0.0.1"))
  end,
  "counters-expire" => lambda do
    status("/long", "10.0.0.3")
    keys = connection.keys("rack::attack:*:long:10.0.0.3")
    same(1, keys.size)
    that(connection.ttl(keys.first).between?(1, 3601), "the counter does not expire")
  end,
  "processes-share-limit" => lambda do
    # The hour may end meanwhile, but not twice.
    2.times do |attempt|
      hour = Time.now.to_i / 3600
      admitted = in_processes do
        Rack::Attack.cache.store = connection
        Array.new(10) { status("/long", "10.0.1.#{attempt}") }.count(200)
      end
      break same(10, admitted) if hour == Time.now.to_i / 3600
    end
  end,
  "fail2ban" => lambda do
    same([403] * 3, Array.new(3) { status("/secret", "10.0.0.4") })
    same([403, 200], [status("/", "10.0.0.4"), status("/", "10.0.0.5")])
    sleep(2.1)
    same(200, status("/", "10.0.0.4"))
  end,
  "allow2ban-and-reset" => lambda do
    same([200] * 3 + [403], Array.new(4) { status("/login", "10.0.0.6") })
    same(403, status("/", "10.0.0.6"))
    Rack::Attack::Allow2Ban.reset("login:10.0.0.6", findtime: 3600)
    same(200, status("/", "10.0.0.6"))
  end,
  "reset-everything" => lambda do
    connection.set("not mine", "kept")
    Array.new(11) { status("/long", "10.0.0.7") }
    Rack::Attack.reset!
    same([[], "kept"], [connection.keys("rack::attack*"), connection.get("not mine")])
    same(200, status("/long", "10.0.0.7"))
  end,
  "a-server-that-is-away-admits" => lambda do
    Rack::Attack.cache.store = Redis.new(host: "127.0.0.1", port: 1, reconnect_attempts: 0)
    same([200] * 11, Array.new(11) { status("/long", "10.0.0.8") })
    Rack::Attack.cache.store = connection
  end
)
