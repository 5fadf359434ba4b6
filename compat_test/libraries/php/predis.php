<?php
/** Drives Predis, the client in PHP. */
declare(strict_types=1);

require __DIR__ . '/report.php';
require 'Predis/autoload.php';

use Predis\Client;
use Predis\Command\ScriptCommand;
use Predis\Response\ServerException;

/** Predis sends EVALSHA, and EVAL when the server does not know the script. */
final class WindowCommand extends ScriptCommand
{
    public function getKeysCount()
    {
        return 1;
    }

    public function getScript()
    {
        return WINDOW;
    }
}

function connection(array $options = []): Client
{
    [$host, $port] = address();
    $client = new Client(['host' => $host, 'port' => $port, 'read_write_timeout' => 20], $options);
    $client->getProfile()->defineCommand('window', WindowCommand::class);
    return $client;
}

$redis = connection();

run(Client::VERSION, [
    'script-limit' => function () use ($redis) {
        for ($left = 4; $left >= 0; $left--) {
            same([1, $left], $redis->window('script', 5, 2000));
        }
        [$admitted, $wait] = $redis->window('script', 5, 2000);
        that($admitted === 0 && $wait >= 1 && $wait <= 2000, "got $admitted $wait");
        usleep(($wait + 100) * 1000);
        same([1, 4], $redis->window('script', 5, 2000));
        same(1, $redis->del('script'));
        same([1, 4], $redis->window('script', 5, 2000));
    },
    'script-is-loaded-when-missing' => function () use ($redis) {
        $redis->script('flush');
        $text = thrown(ServerException::class, fn () => $redis->evalsha(sha1(WINDOW), 0));
        same('NOSCRIPT No matching script. Please use EVAL.', $text);
        same([1, 1], $redis->window('missing', 2, 60000));
        same([1, 0], $redis->script('exists', sha1(WINDOW), str_repeat('0', 40)));
        same([1, 0], $redis->eval(WINDOW, 1, 'missing', 2, 60000));
    },
    'processes-share-limit' => function () {
        same(50, inProcesses(function () {
            $redis = connection();
            $admitted = 0;
            for ($i = 0; $i < 40; $i++) {
                $admitted += $redis->window('shared', 50, 60000)[0];
            }
            return $admitted;
        }));
    },
    'pipeline' => function () use ($redis) {
        $got = $redis->pipeline(function ($pipe) {
            for ($i = 0; $i < 100; $i++) {
                $pipe->incr('piped');
            }
        });
        same(range(1, 100), $got);
        // Without exceptions an error in the middle leaves its neighbours alone.
        $got = connection(['exceptions' => false])->pipeline(fn ($pipe) => $pipe->incr('piped')->lpush('piped', 'x')->incr('piped'));
        same([101, 102], [$got[0], $got[2]]);
        that(str_starts_with($got[1]->getMessage(), 'WRONGTYPE '), $got[1]->getMessage());
    },
    'transaction' => function () use ($redis) {
        $got = $redis->transaction(function ($tx) {
            $tx->zremrangebyscore('log', '-inf', '(940.5');
            $tx->zadd('log', ['a' => 1000.5]);
            $tx->zcard('log');
            $tx->zrange('log', 0, -1, ['withscores' => true]);
            $tx->expire('log', 60);
        });
        same([0, 1, 1, ['a' => '1000.5'], 1], $got);
    },
    'watched-transactions-share-limit' => function () {
        same(10, inProcesses(function () {
            $redis = connection();
            $admitted = 0;
            for ($i = 0; $i < 5; $i++) {
                // The first run is for reading; it is run again after an interference.
                $redis->transaction(['watch' => 'tokens', 'cas' => true, 'retry' => 200], function ($tx) use (&$took) {
                    $took = (int) $tx->get('tokens') < 10 ? 1 : 0;
                    $tx->multi();
                    $tx->incrby('tokens', $took);
                });
                $admitted += $took;
            }
            return $admitted;
        }));
        same('10', connection()->get('tokens'));
    },
    'hash' => function () use ($redis) {
        same('OK', (string) $redis->hmset('bucket', ['tokens' => '3', 'at' => '12.5']));
        same(['3', null], $redis->hmget('bucket', ['tokens', 'none']));
        same('2.5', $redis->hincrbyfloat('bucket', 'tokens', -0.5));
        same(['tokens' => '2.5', 'at' => '12.5'], $redis->hgetall('bucket'));
    },
    'subscribe' => function () use ($redis) {
        $loop = connection()->pubSubLoop(['subscribe' => 'opened', 'psubscribe' => 'limit:*']);
        $got = [];
        foreach ($loop as $message) {
            $got[] = [$message->kind, $message->channel, $message->payload];
            if (count($got) === 2) {
                same([1, 1], [$redis->publish('opened', 'a'), $redis->publish('limit:7', 'b')]);
            }
            if (count($got) === 4) {
                $loop->stop();
            }
        }
        same([
            ['subscribe', 'opened', 1], ['psubscribe', 'limit:*', 2],
            ['message', 'opened', 'a'], ['pmessage', 'limit:7', 'b'],
        ], array_slice($got, 0, 4));
    },
    'errors' => function () use ($redis) {
        $redis->set('text', 'abc');
        $text = thrown(ServerException::class, fn () => $redis->hget('text', 'f'));
        that(str_starts_with($text, 'WRONGTYPE '), $text);
        $text = thrown(ServerException::class, fn () => $redis->eval("return redis.error_reply('LIMITED come back later')", 0));
        same('LIMITED come back later', $text);
        same('abc', $redis->get('text'));
    },
    'native-throttle' => function () use ($redis) {
        for ($left = 4; $left >= 0; $left--) {
            $got = $redis->executeRaw(['CL.THROTTLE', 'native', 4, 5, 3600]);
            same([0, 5, $left, -1], array_slice($got, 0, 4));
        }
        $got = $redis->executeRaw(['CL.THROTTLE', 'native', 4, 5, 3600]);
        same([1, 5, 0], array_slice($got, 0, 3));
        that($got[3] >= 600 && $got[3] <= 720 && $got[4] > $got[3], json_encode($got));
        $text = $redis->executeRaw(['CL.THROTTLE', 'native', 'x', 5, 60], $failed);
        same(true, $failed);
        that(str_contains($text, 'parse as integer: x'), $text);
    },
]);
