# frozen_string_literal: true

# What every program here reports, as ../README.md describes, and what they share.

$stdout.sync = true

# Limits a key to ARGV[1] calls in ARGV[2] milliseconds from the first: answers 1 and
# what is left, or 0 and the milliseconds until the window ends.
WINDOW = <<~LUA
  local n = redis.call('INCR', KEYS[1])
  if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
  if n > tonumber(ARGV[1]) then return {0, redis.call('PTTL', KEYS[1])} end
  return {1, tonumber(ARGV[1]) - n}
LUA

# Says why a check failed.
class Failed < StandardError
end

def connection
  host, port = ENV.fetch("CELL_ADDR").split(":")
  Redis.new(host: host, port: port.to_i, timeout: 20)
end

def same(want, got)
  that(want == got, "got #{got.inspect}, want #{want.inspect}")
end

def that(holds, why)
  raise Failed, why unless holds
end

# The text of the error that the block has to raise.
def raised(kind)
  got = yield
rescue kind => e
  e.message
else
  raise Failed, "got #{got.inspect}, want a #{kind}"
end

# Adds up what the block returns in processes of their own, which have to open their
# own connections.
def in_processes(count = 4)
  pipes = Array.new(count) do
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      begin
        writer.write(yield.to_s)
      rescue StandardError => e
        writer.write(e.full_message(highlight: false))
      end
      writer.close
      exit!
    end
    writer.close
    [pid, reader]
  end
  pipes.sum do |pid, reader|
    said = reader.read
    Process.wait(pid)
    Integer(said, exception: false) || raise(Failed, "a process said #{said}")
  end
end

# Runs the checks, which are lambdas by name, and ends the program.
def run(version, checks)
  puts "info version #{version}"
  failed = checks.count do |name, check|
    check.call
    puts "ok #{name}"
    false
  rescue StandardError => e
    why = e.is_a?(Failed) ? e.message : e.full_message(highlight: false)
    puts "FAIL #{name}: #{why.gsub(/[\r\n]+/, ' ')}"
    true
  end
  exit(failed.zero?)
end
