<?php
/** Drives phpredis, the extension. */
declare(strict_types=1);

require __DIR__ . '/report.php';

function connection(): Redis
{
    $redis = new Redis();
    $redis->connect(...address());
    return $redis;
}

/** EVALSHA, and EVAL when the server does not know the script. */
function window(Redis $redis, string $key, int $limit, int $millis): array
{
    $got = $redis->evalSha(sha1(WINDOW), [$key, $limit, $millis], 1);
    if ($got === false && str_starts_with((string) $redis->getLastError(), 'NOSCRIPT')) {
        $redis->clearLastError();
        $got = $redis->eval(WINDOW, [$key, $limit, $millis], 1);
    }
    that(is_array($got), 'the script answered ' . $redis->getLastError());
    return $got;
}

$redis = connection();

run(phpversion('redis'), [
    'script-limit' => function () use ($redis) {
        for ($left = 4; $left >= 0; $left--) {
            same([1, $left], window($redis, 'script', 5, 2000));
        }
        [$admitted, $wait] = window($redis, 'script', 5, 2000);
        that($admitted === 0 && $wait >= 1 && $wait <= 2000, "got $admitted $wait");
        usleep(($wait + 100) * 1000);
        same([1, 4], window($redis, 'script', 5, 2000));
        same(1, $redis->del('script'));
        same([1, 4], window($redis, 'script', 5, 2000));
    },
    'script-is-loaded-when-missing' => function () use ($redis) {
        same(true, $redis->script('flush'));
        same(false, $redis->evalSha(sha1(WINDOW), ['missing', 1, 1000], 1));
        same('NOSCRIPT No matching script. Please use EVAL.', $redis->getLastError());
        same([1, 1], window($redis, 'missing', 2, 60000));
        same([1, 0], $redis->script('exists', sha1(WINDOW), str_repeat('0', 40)));
        same(sha1('return 1'), $redis->script('load', 'return 1'));
    },
    'processes-share-limit' => function () {
        same(50, inProcesses(function () {
            $redis = connection();
            $admitted = 0;
            for ($i = 0; $i < 40; $i++) {
                $admitted += window($redis, 'shared', 50, 60000)[0];
            }
            return $admitted;
        }));
    },
    'counter' => function () use ($redis) {
        same(1, $redis->incr('counter'));
        same(true, $redis->expire('counter', 60));
        same(4, $redis->incrBy('counter', 3));
        same(true, $redis->set('lock', 'me', ['nx', 'ex' => 60]));
        same(false, $redis->set('lock', 'you', ['nx', 'ex' => 60]));
        that($redis->ttl('lock') > 0, 'the lock does not expire');
    },
    'pipeline' => function () use ($redis) {
        $pipe = $redis->pipeline();
        for ($i = 0; $i < 100; $i++) {
            $pipe->incr('piped');
        }
        same(range(1, 100), $pipe->exec());
        $got = $redis->pipeline()->incr('piped')->lPush('piped', 'x')->incr('piped')->exec();
        same([101, false, 102], $got);
    },
    'multi' => function () use ($redis) {
        $now = 1000.5;
        $got = $redis->multi()
            ->zRemRangeByScore('log', '-inf', '(' . ($now - 60))
            ->zAdd('log', $now, 'a')
            ->zCard('log')
            ->zRange('log', 0, -1, true)
            ->expire('log', 60)
            ->exec();
        same([0, 1, 1, ['a' => 1000.5], true], $got);
    },
    'watch' => function () use ($redis) {
        $other = connection();
        $redis->watch('watched');
        $other->incr('watched');
        same(false, $redis->multi()->incr('watched')->exec());
        $redis->watch('watched');
        same([2], $redis->multi()->incr('watched')->exec());
    },
    'hash' => function () use ($redis) {
        same(true, $redis->hMSet('bucket', ['tokens' => '3', 'at' => '12.5']));
        same(['tokens' => '3', 'none' => false], $redis->hMGet('bucket', ['tokens', 'none']));
        same(2.5, $redis->hIncrByFloat('bucket', 'tokens', -0.5));
        same(['tokens' => '2.5', 'at' => '12.5'], $redis->hGetAll('bucket'));
    },
    'subscribe' => function () {
        // Another process publishes until somebody listens.
        if (($sender = pcntl_fork()) === 0) {
            $publisher = connection();
            for ($i = 0; $i < 2000 && $publisher->publish('opened', 'now') === 0; $i++) {
                usleep(10000);
            }
            posix_kill(posix_getpid(), SIGKILL);
        }
        $listener = connection();
        $listener->setOption(Redis::OPT_READ_TIMEOUT, '20');
        $got = [];
        $note = function ($redis, $channel, $message) use (&$got) {
            $got[] = [$channel, $message];
            $redis->close(); // only this ends the loop of subscribe()
        };
        thrown(RedisException::class, fn () => $listener->subscribe(['opened'], $note));
        pcntl_waitpid($sender, $status);
        same([['opened', 'now']], $got);
    },
    'errors' => function () use ($redis) {
        $redis->set('text', 'abc');
        same(false, $redis->hGet('text', 'f'));
        that(str_starts_with((string) $redis->getLastError(), 'WRONGTYPE '), (string) $redis->getLastError());
        $redis->clearLastError();
        // phpredis throws for every kind of error that it does not know.
        $call = fn () => $redis->eval("return redis.error_reply('LIMITED come back later')");
        same('LIMITED come back later', thrown(RedisException::class, $call));
        same('abc', $redis->get('text'));
    },
    'native-throttle' => function () use ($redis) {
        for ($left = 4; $left >= 0; $left--) {
            $got = $redis->rawCommand('CL.THROTTLE', 'native', 4, 5, 3600);
            same([0, 5, $left, -1], array_slice($got, 0, 4));
        }
        $got = $redis->rawCommand('CL.THROTTLE', 'native', 4, 5, 3600);
        same([1, 5, 0], array_slice($got, 0, 3));
        that($got[3] >= 600 && $got[3] <= 720 && $got[4] > $got[3], json_encode($got));
        $text = thrown(RedisException::class, fn () => $redis->rawCommand('CL.THROTTLE', 'native', 'x', 5, 60));
        that(str_contains($text, 'parse as integer: x'), $text);
    },
]);
