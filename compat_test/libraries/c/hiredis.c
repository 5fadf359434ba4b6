/* Drives hiredis, synchronously and with its callbacks, and reports as ../README.md
 * describes. */
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limits a key to ARGV[1] calls in ARGV[2] milliseconds from the first: answers 1 and
 * what is left, or 0 and the milliseconds until the window ends. */
static const char *WINDOW =
    "local n = redis.call('INCR', KEYS[1])\n"
    "if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end\n"
    "if n > tonumber(ARGV[1]) then return {0, redis.call('PTTL', KEYS[1])} end\n"
    "return {1, tonumber(ARGV[1]) - n}\n";

static char host[256];
static int port;
static char why[512]; /* why the running check failed, if it did */

static void expect(int holds, const char *format, ...) {
    va_list args;
    if (holds || why[0]) return;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
}

static redisContext *connection(void) {
    struct timeval patience = {20, 0};
    redisContext *c = redisConnectWithTimeout(host, port, patience);
    if (c == NULL || c->err) {
        fprintf(stderr, "no connection: %s\n", c ? c->errstr : "no memory");
        exit(1);
    }
    redisSetTimeout(c, patience);
    return c;
}

/* Writes a reply as text, which is easy to compare and to print. */
static size_t show(const redisReply *r, char *out, size_t size) {
    size_t n = 0, i;
    if (r == NULL) return snprintf(out, size, "no reply");
    switch (r->type) {
    case REDIS_REPLY_INTEGER: return snprintf(out, size, "%lld", r->integer);
    case REDIS_REPLY_NIL: return snprintf(out, size, "nil");
    case REDIS_REPLY_ERROR: return snprintf(out, size, "-%s", r->str);
    case REDIS_REPLY_ARRAY:
        n = snprintf(out, size, "[");
        for (i = 0; i < r->elements && n + 64 < size; i++) {
            if (i) n += snprintf(out + n, size - n, " ");
            n += show(r->element[i], out + n, size - n);
        }
        return n + snprintf(out + n, size - n, "]");
    default: return snprintf(out, size, "%s", r->str);
    }
}

/* Frees the reply after checking that it reads as wanted. */
static void reads(redisReply *r, const char *want) {
    char got[400];
    show(r, got, sizeof got);
    expect(strcmp(got, want) == 0, "got %s, want %s", got, want);
    if (r) freeReplyObject(r);
}

static redisReply *window(redisContext *c, const char *key, int limit, int millis) {
    return redisCommand(c, "EVAL %s 1 %s %d %d", WINDOW, key, limit, millis);
}

static void script_limit(redisContext *c) {
    char want[32];
    long long wait = -1;
    int left;
    for (left = 4; left >= 0; left--) {
        snprintf(want, sizeof want, "[1 %d]", left);
        reads(window(c, "script", 5, 2000), want);
    }
    redisReply *r = window(c, "script", 5, 2000);
    if (r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 && r->element[0]->integer == 0)
        wait = r->element[1]->integer;
    expect(wait >= 1 && wait <= 2000, "told to wait %lld ms", wait);
    freeReplyObject(r);
    usleep((wait + 100) * 1000);
    reads(window(c, "script", 5, 2000), "[1 4]");
    reads(redisCommand(c, "DEL script"), "1");
    reads(window(c, "script", 5, 2000), "[1 4]");
}

static void script_cache(redisContext *c) {
    reads(redisCommand(c, "SCRIPT FLUSH"), "OK");
    reads(redisCommand(c, "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0"),
          "-NOSCRIPT No matching script. Please use EVAL.");
    reads(redisCommand(c, "SCRIPT LOAD %s", "return 1"), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    reads(redisCommand(c, "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0"), "1");
}

static void *twenty_calls(void *admitted) {
    redisContext *c = connection();
    for (int i = 0; i < 20; i++) {
        redisReply *r = window(c, "shared", 50, 60000);
        if (r && r->type == REDIS_REPLY_ARRAY) *(long long *)admitted += r->element[0]->integer;
        freeReplyObject(r);
    }
    redisFree(c);
    return NULL;
}

static void threads(redisContext *c) {
    pthread_t running[8];
    long long admitted[8] = {0}, sum = 0;
    (void)c;
    for (int i = 0; i < 8; i++) pthread_create(&running[i], NULL, twenty_calls, &admitted[i]);
    for (int i = 0; i < 8; i++) {
        pthread_join(running[i], NULL);
        sum += admitted[i];
    }
    expect(sum == 50, "%lld calls passed, want 50", sum);
}

static void next_reads(redisContext *c, const char *want) {
    void *r = NULL;
    if (redisGetReply(c, &r) != REDIS_OK) r = NULL;
    reads(r, want);
}

static void pipeline(redisContext *c) {
    char want[16];
    for (int i = 0; i < 1000; i++) redisAppendCommand(c, "INCR piped");
    redisAppendCommand(c, "LPUSH piped x");
    redisAppendCommand(c, "INCR piped");
    for (int i = 1; i <= 1000; i++) {
        snprintf(want, sizeof want, "%d", i);
        next_reads(c, want);
    }
    next_reads(c, "-WRONGTYPE Operation against a key holding the wrong kind of value");
    next_reads(c, "1001");
}

static void transaction(redisContext *c) {
    redisAppendCommand(c, "MULTI");
    redisAppendCommand(c, "ZREMRANGEBYSCORE log -inf (940.5");
    redisAppendCommand(c, "ZADD log 1000.5 a");
    redisAppendCommand(c, "ZCARD log");
    redisAppendCommand(c, "ZRANGE log 0 -1 WITHSCORES");
    redisAppendCommand(c, "EXEC");
    next_reads(c, "OK");
    for (int i = 0; i < 4; i++) next_reads(c, "QUEUED");
    next_reads(c, "[0 1 1 [a 1000.5]]");
    redisContext *other = connection();
    reads(redisCommand(c, "WATCH watched"), "OK");
    reads(redisCommand(other, "INCR watched"), "1");
    reads(redisCommand(c, "MULTI"), "OK");
    reads(redisCommand(c, "INCR watched"), "QUEUED");
    reads(redisCommand(c, "EXEC"), "nil");
    redisFree(other);
}

static void binary(redisContext *c) {
    const char *argv[] = {"HSET", "a\0\xff\r\n", "f\0", "\0"};
    size_t lengths[] = {4, 5, 2, 1};
    reads(redisCommandArgv(c, 4, argv, lengths), "1");
    redisReply *r = redisCommand(c, "HGET %b %b", argv[1], lengths[1], argv[2], lengths[2]);
    expect(r && r->type == REDIS_REPLY_STRING && r->len == 1 && r->str[0] == 0, "HGET lost the value");
    freeReplyObject(r);
}

static void subscribe(redisContext *c) {
    redisContext *listener = connection();
    reads(redisCommand(listener, "SUBSCRIBE opened"), "[subscribe opened 1]");
    reads(redisCommand(c, "PUBLISH opened now"), "1");
    next_reads(listener, "[message opened now]");
    reads(redisCommand(listener, "UNSUBSCRIBE opened"), "[unsubscribe opened 0]");
    reads(redisCommand(listener, "PING"), "PONG");
    redisFree(listener);
}

static int async_admitted, async_answered;

static void counted(redisAsyncContext *ac, void *reply, void *unused) {
    redisReply *r = reply;
    (void)unused;
    if (r && r->type == REDIS_REPLY_ARRAY) async_admitted += r->element[0]->integer == 1;
    if (++async_answered == 100) redisAsyncDisconnect(ac);
}

static int gone;

static void disconnected(const redisAsyncContext *ac, int status) {
    (void)ac;
    gone = 1 + (status != REDIS_OK);
}

static void async(redisContext *c) {
    (void)c;
    redisAsyncContext *ac = redisAsyncConnect(host, port);
    redisAsyncSetDisconnectCallback(ac, disconnected);
    for (int i = 0; i < 100; i++) redisAsyncCommand(ac, counted, NULL, "EVAL %s 1 async 40 60000", WINDOW);
    /* poll() is event loop enough; it is given up when nothing comes for 20 seconds. */
    while (!gone) {
        struct pollfd fd = {ac->c.fd, POLLIN, 0};
        if (ac->c.obuf && sdslen(ac->c.obuf)) fd.events |= POLLOUT;
        if (!(ac->c.flags & REDIS_CONNECTED)) fd.events |= POLLOUT;
        if (poll(&fd, 1, 20000) <= 0) break;
        if (fd.revents & POLLOUT) redisAsyncHandleWrite(ac);
        if (!gone && (fd.revents & (POLLIN | POLLHUP | POLLERR))) redisAsyncHandleRead(ac);
    }
    expect(gone == 1 && async_answered == 100, "%d answers, end %d", async_answered, gone);
    expect(async_admitted == 40, "%d calls passed, want 40", async_admitted);
}

static void errors(redisContext *c) {
    reads(redisCommand(c, "SET text abc"), "OK");
    reads(redisCommand(c, "HGET text f"), "-WRONGTYPE Operation against a key holding the wrong kind of value");
    reads(redisCommand(c, "EVAL %s 0", "return redis.error_reply('LIMITED come back later')"), "-LIMITED come back later");
    reads(redisCommand(c, "GET text"), "abc");
    expect(c->err == 0, "the connection has an error: %s", c->errstr);
}

static void native_throttle(redisContext *c) {
    reads(redisCommand(c, "CL.THROTTLE native 0 1 3600"), "[0 1 0 -1 3600]");
    redisReply *r = redisCommand(c, "CL.THROTTLE %b %d %d %d %d", "native", (size_t)6, 0, 1, 3600, 1);
    int denied = r && r->type == REDIS_REPLY_ARRAY && r->elements == 5 && r->element[0]->integer == 1;
    expect(denied && r->element[3]->integer >= 3500 && r->element[3]->integer <= 3600, "not refused, or with no sound wait");
    freeReplyObject(r);
    for (int i = 0; i < 100; i++) redisAppendCommand(c, "CL.THROTTLE piped:native 49 50 3600");
    int admitted = 0;
    for (int i = 0; i < 100; i++) {
        void *p = NULL;
        redisGetReply(c, &p);
        r = p;
        admitted += r && r->type == REDIS_REPLY_ARRAY && r->element[0]->integer == 0;
        freeReplyObject(r);
    }
    expect(admitted == 50, "%d calls passed, want 50", admitted);
}

static const struct {
    const char *name;
    void (*check)(redisContext *);
} checks[] = {
    {"script-limit", script_limit}, {"script-cache", script_cache},
    {"threads-share-limit", threads}, {"pipeline", pipeline},
    {"transaction", transaction},   {"binary", binary},
    {"subscribe", subscribe},       {"async", async},
    {"errors", errors},             {"native-throttle", native_throttle},
};

int main(void) {
    const char *addr = getenv("CELL_ADDR");
    int failed = 0;
    if (addr == NULL || sscanf(addr, "%255[^:]:%d", host, &port) != 2) {
        fprintf(stderr, "CELL_ADDR is host:port\n");
        return 1;
    }
    redisContext *c = connection();
    printf("info version %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        why[0] = 0;
        checks[i].check(c);
        if (why[0]) {
            failed = 1;
            printf("FAIL %s: %s\n", checks[i].name, why);
        } else {
            printf("ok %s\n", checks[i].name);
        }
        fflush(stdout);
    }
    redisFree(c);
    return failed;
}
