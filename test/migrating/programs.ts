import type { Section } from './row.ts'

const login =
  "{ id: 'login', by: 'account', match: 'none', limit: '3/m', algorithm: 'fixed-window', align: 'first-call', block: 'manual' }"
const left = "(await limiter.get('login', 'ann')).decisions[0].remaining"

export const flexible: Section = {
  from: 'rate-limiter-flexible',
  rows: [
    {
      theirs: 'new RateLimiterMemory({ points: 3, duration: 60 })',
      ours: "await createLimiter({ clock, rules: [{ id: 'login', by: 'account', match: 'none', limit: '3/m', algorithm: 'fixed-window', align: 'first-call' }] })",
      note: '`RateLimiterRedis` is the same with `store: { redis: client }`; leave `clock` out, it is for tests',
      as: 'program',
      gives: 'made.rules[0].id === "login"',
    },
    {
      theirs: 'await limiter.consume(key)',
      ours: "(await limiter.consume('login', 'ann')).allowed",
      note: 'a verdict instead of a rejected promise',
      as: 'program',
      beside: login,
      gives: true,
    },
    {
      theirs: 'await limiter.consume(key, 2)',
      ours: "await limiter.consume('login', 'ann', { cost: 2 })",
      note: 'refused, it costs nothing; there it empties the bucket',
      as: 'program',
      beside: login,
      gives: `${left} === 1`,
    },
    {
      theirs: 'rejected.msBeforeNext',
      ours: "(await limiter.consume('login', 'ann')).retryAfterMs",
      as: 'program',
      beside: `${login}; await limiter.consume('login', 'ann', { cost: 3 })`,
      gives: 60_000,
    },
    {
      theirs: '(await limiter.get(key)).remainingPoints',
      ours: left,
      note: '`remaining` also of a key that was never seen',
      as: 'program',
      beside: login,
      gives: 3,
    },
    {
      theirs: 'await limiter.delete(key)',
      ours: "await limiter.reset('login', 'ann')",
      as: 'program',
      beside: `${login}; await limiter.consume('login', 'ann')`,
      gives: `${left} === 3`,
    },
    {
      theirs: 'await limiter.block(key, 60)',
      ours: "await limiter.block('login', 'ann', '60s')",
      note: 'the rule needs `block`, if only `block: manual`',
      as: 'program',
      beside: login,
      gives: "(await limiter.consume('login', 'ann')).reason === 'blocked'",
    },
    {
      theirs: 'await limiter.penalty(key, 2)',
      ours: "await limiter.consume('login', 'ann', { cost: Math.min(2, (await limiter.get('login', 'ann')).decisions[0].remaining) })",
      note: 'up to the limit; a call whose cost does not fit is refused and charged nothing',
      as: 'program',
      beside: `${login}; await limiter.consume('login', 'ann', { cost: 2 })`,
      gives: `${left} === 0`,
    },
    {
      theirs: 'await limiter.reward(key, 1)',
      ours: "await limiter.reward('login', 'ann', 1)",
      note: 'or `await verdict.refund()`, of the verdict that was charged; `set(key, points, 0)` is `set(rule, who, used)`',
      as: 'program',
      beside: `${login}; await limiter.consume('login', 'ann')`,
      gives: `${left} === 3`,
    },
    {
      theirs: 'blockDuration: 300',
      ours: '{ by: ip, limit: 1/h, block: { first: 5m, factor: 1 } }',
      note: 'the count is cleared when the block ends, as there; with `block: 5m` the limit holds as well',
      as: 'rule',
      calls: '200 503 @61 503 @240 200',
    },
    {
      theirs: 'execEvenly: true',
      ours: '{ by: ip, limit: 2/s, algorithm: leaky-bucket, burst: 1, whenFull: wait }',
      as: 'rule',
      calls: '200 +500 503',
    },
    {
      theirs: 'new RateLimiterUnion(perSecond, perMinute)',
      ours: '{ by: ip, limit: [1/s, 2/m] }',
      note: 'or several rules: a call that one refuses is charged by none',
      as: 'rule',
      calls: '200 503 503 @1 200 @1 503',
    },
    {
      theirs: 'new BurstyRateLimiter(one, two)',
      ours: '{ by: ip, limit: 1/s, algorithm: token-bucket, burst: 3 }',
      as: 'rule',
      calls: '200 200 200 503 @1 200 503',
    },
    {
      theirs: 'insuranceLimiter: new RateLimiterMemory(…)',
      ours: "whenStoreDown: 'share'",
      note: 'the default: the share of this process in the fleet is found by itself',
      as: 'express',
      beside: 'store: broken',
      calls: '200 503',
    },
  ],
}

export const upstash: Section = {
  from: '@upstash/ratelimit',
  rows: [
    {
      theirs: "Ratelimit.fixedWindow(2, '10 s')",
      ours: '{ by: ip, limit: 2/10s, algorithm: fixed-window }',
      as: 'rule',
      calls: '200 200 503 @10 200',
    },
    {
      theirs: "Ratelimit.slidingWindow(2, '10 s')",
      ours: '{ by: ip, limit: 2/10s }',
      note: 'the default; there an estimate from two windows, here never more than the limit',
      as: 'rule',
      calls: '200 200 503 @10 200',
    },
    {
      theirs: "Ratelimit.tokenBucket(1, '10 s', 3)",
      ours: '{ by: ip, limit: 1/10s, algorithm: token-bucket, burst: 3, refill: interval }',
      as: 'rule',
      calls: '200 200 200 503 @10 200 503',
    },
    {
      theirs: '(await ratelimit.limit(id)).success',
      ours: "(await limiter.consume('login', 'ann')).allowed",
      as: 'program',
      beside: login,
      gives: true,
    },
    {
      theirs: 'ratelimit.limit(id, { rate: 2 })',
      ours: "await limiter.consume('login', 'ann', { cost: 2 })",
      as: 'program',
      beside: login,
      gives: `${left} === 1`,
    },
    { theirs: 'ratelimit.getRemaining(id)', ours: left, as: 'program', beside: login, gives: 3 },
    {
      theirs: 'ratelimit.resetUsedTokens(id)',
      ours: "await limiter.reset('login', 'ann')",
      as: 'program',
      beside: `${login}; await limiter.consume('login', 'ann')`,
      gives: `${left} === 3`,
    },
    {
      theirs: 'ratelimit.blockUntilReady(id, 1000)',
      ours: '{ by: ip, limit: 2/s, algorithm: leaky-bucket, burst: 2, whenFull: wait, queue: { timeout: 1s } }',
      note: 'a call waits where it is checked',
      as: 'rule',
      calls: '200 +500 +1000 503',
    },
    {
      theirs: 'a deny list',
      ours: '{ by: ip, limit: 9/m, deny: 203.0.113.0/24 }',
      as: 'rule',
      calls: '200 203.0.113.1=403',
    },
  ],
}

const evenly = (every: number, count: number): number[] => Array.from({ length: count }, (_, i) => i * every)

export const bottleneck: Section = {
  from: 'bottleneck',
  rows: [
    {
      theirs: 'new Bottleneck({ minTime: 500 })',
      ours: '{ limit: 2/s, algorithm: token-bucket, burst: 1, whenFull: wait, queue: { size: 100000, timeout: 1d } }',
      note: 'or `RateLimiter.create(2)`, for jobs without rules. The queue of a rule is for requests unless it says otherwise: it loses jobs after 1 s',
      as: 'jobs',
      peer: 'const limiter = new Bottleneck({ minTime: 500 }); return job => limiter.schedule(job)',
      jobs: { count: 30, workMs: 10, starts: evenly(500, 30) },
    },
    {
      theirs: 'limiter.wrap(work)',
      ours: "rateLimited(work, { limit: '2/s', algorithm: 'token-bucket', burst: 1, whenFull: 'wait' })",
      note: 'functions that wait do so for up to a day, 100,000 of a rule, unless `queue` says otherwise',
      as: 'jobs',
      peer: 'const limiter = new Bottleneck({ minTime: 500 }); const wrapped = limiter.wrap(work); return job => wrapped(job)',
      jobs: { count: 30, workMs: 700, starts: evenly(500, 30) },
    },
    {
      theirs: 'limiter.schedule(() => work(1))',
      ours: "await limiter.jobs('login', 'ann').schedule(() => work(1))",
      note: 'unbounded; `priority`, `weight` and `signal` as in [jobs](library.md#jobs), where a higher priority is first',
      as: 'jobs',
      beside: "{ id: 'login', by: 'account', match: 'none', limit: '2/s', algorithm: 'token-bucket', burst: 1 }",
      peer: 'const limiter = new Bottleneck({ minTime: 500 }); return job => limiter.schedule(() => work(job))',
      jobs: { count: 10, workMs: 10, starts: evenly(500, 10) },
    },
    {
      theirs: 'maxConcurrent: 1',
      ours: "rateLimited(work, { limit: 1, algorithm: 'concurrency', whenFull: 'wait' })",
      as: 'jobs',
      peer: 'const limiter = new Bottleneck({ maxConcurrent: 1 }); return job => limiter.schedule(job)',
      jobs: { count: 5, workMs: 700, starts: evenly(700, 5) },
    },
    {
      theirs: 'reservoir: 2, reservoirRefreshAmount: 2, reservoirRefreshInterval: 60_000',
      ours: '{ limit: 2/m, algorithm: fixed-window, align: first-call, whenFull: wait, queue: { size: 100000, timeout: 1d } }',
      note: 'there periods begin with the limiter, here with the first job',
      as: 'jobs',
      peer: 'const limiter = new Bottleneck({ reservoir: 2, reservoirRefreshAmount: 2, reservoirRefreshInterval: 60_000 }); return job => limiter.schedule(job)',
      jobs: { count: 7, workMs: 10, starts: [0, 0, 60_000, 60_000, 120_000, 120_000, 180_000] },
    },
    {
      theirs: 'maxConcurrent: 1, highWater: 1, strategy: Bottleneck.strategy.OVERFLOW',
      ours: '{ limit: 1, algorithm: concurrency, whenFull: wait, queue: { size: 1, timeout: 1d } }',
      note: 'there `highWater` drops nothing with `minTime` alone; here `queue.size` bounds the calls that wait for either',
      as: 'jobs',
      peer: 'const limiter = new Bottleneck({ maxConcurrent: 1, highWater: 1, strategy: Bottleneck.strategy.OVERFLOW }); return job => limiter.schedule(job)',
      jobs: { count: 4, workMs: 500, starts: [0, 500, undefined, undefined] },
    },
    {
      theirs: 'new Bottleneck.Group({ minTime: 60_000 }).key(id)',
      ours: '{ by: account, limit: 1/m, algorithm: token-bucket, burst: 1, whenFull: wait, queue: { size: 100000, timeout: 1d } }',
      note: '`by` has a count for each key; unused ones are forgotten',
      as: 'jobs',
      peer: "const group = new Bottleneck.Group({ minTime: 60_000 }); return (job, i) => group.key(i % 2 ? 'ann' : 'bob').schedule(job)",
      jobs: { count: 6, workMs: 10, starts: [0, 0, 60_000, 60_000, 120_000, 120_000] },
    },
  ],
}

export const pLimit: Section = {
  from: 'p-limit',
  rows: [
    {
      theirs: 'const limit = pLimit(2)',
      ours: 'RateLimiter.create(Infinity, { concurrency: 2 }).limit',
      note: 'with a number in place of `Infinity`, so many jobs a second as well',
      as: 'jobs',
      peer: 'const limit = pLimit(2); return job => limit(job)',
      jobs: { count: 7, workMs: 500, starts: [0, 0, 500, 500, 1000, 1000, 1500] },
    },
    {
      theirs: 'limit(work, argument)',
      ours: '(await RateLimiter.create(Infinity, { concurrency: 2 }).limit((one, two) => one + two, 1, 2))',
      as: 'program',
      gives: 3,
    },
    {
      theirs: 'activeCount',
      ours: 'RateLimiter.create(5).jobs.running',
      as: 'program',
      gives: 0,
    },
    {
      theirs: 'pendingCount',
      ours: 'RateLimiter.create(5).jobs.waiting',
      as: 'program',
      gives: 0,
    },
    {
      theirs: 'limit.clearQueue()',
      ours: 'RateLimiter.create(5).jobs.clear()',
      note: 'the promises of the jobs reject; there they never settle, unless `rejectOnClear`',
      as: 'program',
      gives: 0,
    },
  ],
}

export const pQueue: Section = {
  from: 'p-queue',
  rows: [
    {
      theirs: 'new PQueue({ concurrency: 1 })',
      ours: 'RateLimiter.create(Infinity, { concurrency: 1 })',
      note: '`queue.add(job)` is `limiter.schedule(job)`',
      as: 'jobs',
      peer: 'const queue = new PQueue({ concurrency: 1 }); return job => queue.add(job)',
      jobs: { count: 5, workMs: 300, starts: evenly(300, 5) },
    },
    {
      theirs: 'queue.add(job, { priority: 1 })',
      ours: 'RateLimiter.create(Infinity, { concurrency: 1 })',
      note: '`limiter.schedule(job, { priority: 1 })`: a higher priority is first in both',
      as: 'jobs',
      options: 'i => ({ priority: i % 2 })',
      peer: 'const queue = new PQueue({ concurrency: 1 }); return (job, i) => queue.add(job, { priority: i % 2 })',
      jobs: { count: 5, workMs: 100, starts: [0, 100, 300, 200, 400] },
    },
    {
      theirs: 'new PQueue({ intervalCap: 2, interval: 1000 })',
      ours: "await limiter.jobs('login').schedule(work)",
      note: 'of a rule with `limit: 2/s, algorithm: fixed-window, align: first-call`',
      as: 'jobs',
      beside: "{ id: 'login', match: 'none', limit: '2/s', algorithm: 'fixed-window', align: 'first-call' }",
      peer: 'const queue = new PQueue({ intervalCap: 2, interval: 1000 }); return job => queue.add(job)',
      jobs: { count: 7, workMs: 10, starts: [0, 0, 1000, 1000, 2000, 2000, 3000] },
    },
    {
      theirs: 'await queue.onIdle()',
      ours: 'await RateLimiter.create(5).drain()',
      as: 'program',
      gives: undefined,
    },
    {
      theirs: 'queue.pause()',
      ours: 'RateLimiter.create(5).jobs.pause()',
      note: '`queue.start()` is `resume()`',
      as: 'program',
      gives: undefined,
    },
  ],
}

export const nginx: Section = {
  from: 'nginx limit_req and limit_conn',
  rows: [
    {
      theirs: 'limit_req_zone $binary_remote_addr zone=z:10m rate=2r/s; limit_req zone=z',
      ours: '{ by: ip, limit: 2/s, algorithm: leaky-bucket }',
      as: 'rule',
      calls: '200 503 @1 200',
    },
    {
      theirs: 'limit_req zone=z burst=2 nodelay',
      ours: '{ by: ip, limit: 2/s, algorithm: leaky-bucket, burst: 2 }',
      as: 'rule',
      calls: '200 200 200 503',
    },
    {
      theirs: 'limit_req zone=z burst=2',
      ours: '{ by: ip, limit: 2/s, algorithm: leaky-bucket, burst: 2, whenFull: wait }',
      as: 'rule',
      calls: '200 +500 +1000 503',
    },
    {
      theirs: 'limit_req zone=z burst=2 delay=1',
      ours: '{ by: ip, limit: 2/s, algorithm: leaky-bucket, burst: 2, delay: 1, whenFull: wait }',
      as: 'rule',
      calls: '200 200 +500 503',
    },
    {
      theirs: 'limit_req_zone $http_x_api_key …',
      ours: "{ by: 'header:x-api-key', missing: skip, limit: 1/s, algorithm: leaky-bucket }",
      note: 'nginx does not count an empty key',
      as: 'rule',
      calls: 'ann=200 ann=503 bob=200 200 200',
    },
    {
      theirs: 'limit_req_zone $server_name …',
      ours: '{ by: host, limit: 1/s, algorithm: leaky-bucket }',
      as: 'rule',
      calls: '200 503',
    },
    {
      theirs: 'two limit_req in one location',
      ours: '{ by: ip, limit: [1/s, 2/m], algorithm: leaky-bucket }',
      note: 'or two rules',
      as: 'rule',
      calls: '200 503',
    },
    {
      theirs: 'limit_req_dry_run on',
      ours: '{ by: ip, limit: 1/m, whenFull: shadow }',
      as: 'rule',
      calls: '200 200 200',
    },
    {
      theirs: 'limit_req_status 429',
      ours: '{ by: ip, limit: 1/m, answer: { status: 429 } }',
      as: 'rule',
      calls: '200 429',
    },
    {
      theirs: 'limit_conn_zone $binary_remote_addr …; limit_conn z 2',
      ours: '{ by: ip, limit: 2, algorithm: concurrency }',
      as: 'rule',
      calls: '200 200 503',
    },
  ],
}
