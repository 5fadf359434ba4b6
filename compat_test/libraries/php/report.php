<?php
/**
 * What every program here reports, as ../README.md describes, and what they share.
 */
declare(strict_types=1);

set_error_handler(function (int $level, string $text, string $file, int $line): bool {
    // Debian's libraries are older than its PHP: what they use is deprecated there.
    if ($level & (E_DEPRECATED | E_USER_DEPRECATED)) {
        return true;
    }
    throw new ErrorException($text, 0, $level, $file, $line);
});

/**
 * Limits a key to ARGV[1] calls in ARGV[2] milliseconds from the first: answers 1 and
 * what is left, or 0 and the milliseconds until the window ends.
 */
const WINDOW = <<<'LUA'
local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if n > tonumber(ARGV[1]) then return {0, redis.call('PTTL', KEYS[1])} end
return {1, tonumber(ARGV[1]) - n}
LUA;

/** Why a check failed. */
final class Failed extends Exception
{
}

/** Runs the checks, which are functions by name, and ends the program. */
function run(string $version, array $checks): never
{
    $failed = 0;
    echo "info version $version\n";
    foreach ($checks as $name => $check) {
        try {
            $check();
            echo "ok $name\n";
        } catch (Throwable $e) {
            $failed = 1;
            $why = $e instanceof Failed ? $e->getMessage() : "$e";
            echo "FAIL $name: " . str_replace(["\r", "\n"], ' ', $why) . "\n";
        }
    }
    exit($failed);
}

function same(mixed $want, mixed $got): void
{
    that($want === $got, 'got ' . var_export($got, true) . ', want ' . var_export($want, true));
}

function that(bool $holds, string $why): void
{
    if (!$holds) {
        throw new Failed($why);
    }
}

/** The text of the exception that $call has to throw. */
function thrown(string $class, callable $call): string
{
    try {
        $got = $call();
    } catch (Throwable $e) {
        that(get_class($e) === $class, "$e is no $class");
        return $e->getMessage();
    }
    throw new Failed('got ' . var_export($got, true) . ", want a $class");
}

/** Host and port of the server. */
function address(): array
{
    [$host, $port] = explode(':', (string) getenv('CELL_ADDR'));
    return [$host, (int) $port];
}

/**
 * Adds up what $work returns in four processes of its own, which have to open their
 * own connections.
 */
function inProcesses(callable $work): int
{
    $children = [];
    for ($i = 0; $i < 4; $i++) {
        $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $pid = pcntl_fork();
        if ($pid === 0) {
            try {
                fwrite($pair[1], (string) $work());
            } catch (Throwable $e) {
                fwrite($pair[1], "$e");
            }
            fclose($pair[1]);
            // Not exit: the parent's connections would be closed politely.
            posix_kill(posix_getpid(), SIGKILL);
        }
        fclose($pair[1]);
        $children[$pid] = $pair[0];
    }
    $sum = 0;
    foreach ($children as $pid => $pipe) {
        $said = stream_get_contents($pipe);
        pcntl_waitpid($pid, $status);
        that(is_numeric($said), "a process said $said");
        $sum += (int) $said;
    }
    return $sum;
}
